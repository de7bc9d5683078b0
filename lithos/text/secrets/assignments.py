"""Values that a name declares to be secret: `GITHUB_TOKEN=...`, `"password": "..."`, `--api-key ...`.

Only the value is found, never the name. The value must be random, so a text about tokens is left alone.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Final

from lithos.text.secrets.placeholders import is_password, is_token

#: Words of which the name of a secret has one at its end, in lower case.
_NEEDLES: Final = ("pass", "pwd", "secret", "token", "key", "credential", "bearer ", "basic ", "sig=")
#: The word, and what a name may have after it.
_NAME: Final = re.compile(
    r"(?P<word>passw(?:or)?d|passphrase|passwd|pass|pwd|secret|token|key|credential)s?"
    r"(?:[_-]?(?:\d{1,3}|value|base64|b64|raw|plain|text|string|default|prod|production|dev|staging|live))?"
    r"(?![A-Za-z0-9_])",
    re.IGNORECASE,
)
_QUOTE: Final = r"(?:\\{0,3}[\"'`])?"
#: What stands between a name and its value. The first alternative is a type, as in `token: str = "..."`.
_SEPARATORS: Final = (
    re.compile(_QUOTE + r"[ \t]{0,2}:[ \t]{0,2}[A-Za-z&][A-Za-z\[\]., |<>&']{0,40}=[ \t]{0,4}"),
    re.compile(
        _QUOTE + r"\]?\)?[ \t]{0,8}\*{0,2}(?::=|=>|->|===?|==|[:=])\*{0,2}[ \t]{0,8}"
        r"|\*{0,2}[ \t]{0,20}\|[ \t]{0,20}|>(?=[^<>\s]+</)|[ \t]{1,2}(?:is|was)[ \t]{0,2}:?[ \t](?=[\"'`])"
    ),
)
_FLAG: Final = re.compile(r"[ \t]+")
_OPEN: Final = re.compile(r"\\{0,3}([\"'`])|[bfru]?([\"'])")
#: Values by their opening quote. An escaped break ends a value.
_VALUES: Final = {
    '"': re.compile(r"(?:(?!\\[nrt\"])[^\s\"]){6,2000}"),
    "'": re.compile(r"(?:(?!\\[nrt'])[^\s']){6,2000}"),
    "`": re.compile(r"(?:(?!\\[nrt])[^\s`]){6,2000}"),
    "": re.compile(r"(?:(?!\\[nrt\"'])[^\s\"'`<>|,;]){6,2000}"),
    "=": re.compile(r"(?:(?!\\[nrt\"'])[^\s\"'`<>|]){6,2000}"),
    "&": re.compile(r"[^\s\"'`<>|,;&)#]{6,2000}"),
}
#: Characters of names, and characters between the words of a name.
_NAME_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_BETWEEN: Final = "_-. "
#: Ends of the part of a name before `key`, for keys that are secret.
_SECRET_KEY: Final = (
    "api", "access", "secret", "private", "encryption", "encrypt", "signing", "signature", "auth",
    "authorization", "master", "service", "account", "shared", "license", "licence", "subscription",
    "webhook", "session", "jwt", "hmac", "app", "application", "consumer", "client", "storage",
    "deploy", "fernet", "cipher", "aes", "admin",
)  # fmt: skip
#: Ends of the part of a name before `token`, for tokens that are not secret.
_PUBLIC_TOKEN: Final = (
    "page", "next", "previous", "continuation", "continue", "sync", "csrf", "xsrf", "cursor", "resume",
    "pagination", "stop", "eos", "bos", "pad", "unk", "mask", "sep", "cls", "special", "max", "num",
    "per", "total", "prompt", "completion", "input", "output", "invalidation", "fencing", "idempotency",
    "concurrency", "change", "delta", "start", "end", "design", "cancellation", "cancel", "lock",
    "public", "device",
)  # fmt: skip
#: Ends of the part of a name before `token`, for tokens that are always secret.
_STRONG_TOKEN: Final = (
    "access", "auth", "api", "bearer", "refresh", "secret", "personal", "deploy", "bot", "session",
    "admin", "service", "private", "oauth", "id", "app", "github", "gitlab", "npm", "slack", "vault",
    "ci", "registry", "gh", "hf", "pypi", "webhook", "user", "client",
)  # fmt: skip
_HEADER_VALUE: Final = re.compile(r"(?:bearer|basic) +(?P<value>[A-Za-z0-9._~+/=-]{12,4000})", re.IGNORECASE)
_SIGNATURE: Final = re.compile(r"(?<=[?&;])sig=(?P<value>[A-Za-z0-9%+/=_-]{40,100})", re.IGNORECASE)
#: Characters that end a sentence or a list and not a value.
_TRAILING: Final = "\\,;.)]}>:!?"


def assignments(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield begin, end and kind of each value of a name that only secrets have."""
    # `İ` is the only character whose lower case has another length.
    lower = text.replace("\u0130", "I").lower()
    for needle in _NEEDLES:
        at = lower.find(needle)
        while at >= 0:
            found = _value_at(text, at, needle)
            if found is not None:
                yield found
            at = lower.find(needle, at + len(needle))


def _value_at(text: str, at: int, needle: str) -> tuple[int, int, str] | None:
    """Return the value of the name that has the word `needle` at a position, or None."""
    if needle in ("bearer ", "basic "):
        return _header_at(text, at, needle)
    if needle == "sig=":
        found = _SIGNATURE.match(text, at)
        return None if found is None or not is_token(found["value"], is_strong=True) else (
            *found.span("value"), "azure shared access signature",
        )  # fmt: skip
    name = _NAME.match(text, at)
    if name is None:
        return None
    word, begin = name["word"].lower(), max(0, at - 40)
    before = text[begin:at]
    kind, is_strong = _kind_of(word, before)
    if not kind:
        return None
    for separator in _separators(before):
        span = _value_after(text, name.end(), separator, before)
        if span is not None and _is_secret(text[slice(*span)], kind, is_strong=is_strong):
            return *span, kind
    return None


def _kind_of(word: str, before: str) -> tuple[str, bool]:
    """Return the kind of secret that a name has, or an empty text, and whether only secrets have the name."""
    if word in ("pass", "pwd") and before[-1:].isalpha():
        return "", False  # such as `bypass` and `compass`
    if word.startswith("pass") or word == "pwd":
        return "password", True
    head = before.rstrip(_BETWEEN).lower()
    if word == "key":
        return ("key", True) if head.endswith(_SECRET_KEY) else ("", False)
    if word == "token":
        return ("", False) if head.endswith(_PUBLIC_TOKEN) else ("token", head.endswith(_STRONG_TOKEN))
    return ("secret value", True)


def _separators(before: str) -> Iterator[re.Pattern[str]]:
    """Yield the patterns of what may stand between a name and its value."""
    if before[_begin_of_name(before) :].startswith("--"):
        yield _FLAG
    yield from _SEPARATORS


def _begin_of_name(before: str) -> int:
    """Return where the last run of characters of names begins."""
    at = len(before)
    while at and before[at - 1] in _NAME_CHARACTERS:
        at -= 1
    return at


def _value_after(text: str, end: int, separator: re.Pattern[str], before: str) -> tuple[int, int] | None:
    """Return the bounds of the value after a name that ends at `end`."""
    between = separator.match(text, end)
    if between is None:
        return None
    begin = between.end()
    opening = _OPEN.match(text, begin)
    if opening is not None:
        begin, form = opening.end(), opening[1] or opening[2]
    elif between[0] == "=":
        begin_of_name = _begin_of_name(before)
        form = "&" if before[:begin_of_name].endswith(("?", "&")) else "="
    else:
        form = ""
    value = _VALUES[form].match(text, begin)
    if value is None:
        return None
    told = value[0]
    if opening is not None and told.endswith("\\"):
        told = told.rstrip("\\")
    return begin, begin + len(told if opening is not None else told.rstrip(_TRAILING))


def _is_secret(value: str, kind: str, *, is_strong: bool) -> bool:
    return is_password(value) if kind == "password" else is_token(value, is_strong=is_strong)


def _header_at(text: str, at: int, needle: str) -> tuple[int, int, str] | None:
    """Return the credentials of an `Authorization` header (RFC 6750, RFC 7617)."""
    found = _HEADER_VALUE.match(text, at)
    if found is None:
        return None
    value = found["value"].rstrip(".-")
    begin = found.start("value")
    if needle == "basic ":
        return (begin, begin + len(value), "basic credentials") if _has_password(value) else None
    return (begin, begin + len(value), "bearer token") if is_token(value, is_strong=True) else None


def _has_password(value: str) -> bool:
    """Return whether a text is `user:password` in base64."""
    try:
        user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:  # not base64, not UTF-8, or a letter such as the Kelvin sign, which equals `k` here
        return False
    return bool(colon) and user.isprintable() and len(password) >= 5 and is_password(password + "Aa1!")
