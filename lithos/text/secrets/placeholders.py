"""Judgement of a value: whether it can be a secret, or is a placeholder, a reference, a name or a hash."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from math import log2
from typing import Final

#: Words of values in documentation and in templates. Random text contains none of them.
_WORDS: Final = re.compile(
    r"example|your|placeholder|change[-_]?me|dummy|sample|redacted|insert|replace|lorem|xxxx|\.\.\.|\*\*\*|"
    r"…|•••|not[-_]?real|todo|fixme|123456|987654|abcdef|qwerty|deadbeef|some[-_]|secret:|masked|hidden"
    # The example of jwt.io: a subject `1234567890` in base64.
    r"|eyJzdWIiOiIxMjM0NTY3ODkw|(.)\1{5}",
    re.IGNORECASE,
)
#: Beginnings of references to a value that is elsewhere: variables, templates, calls, subscripts, markup.
_REFERENCE: Final = re.compile(
    r"\$\{?[A-Za-z_]|\$\(|\$\{|\{\{|%\(?[A-Za-z_]|<|\[|\(|@[A-Z_]+@$|[*&][A-Za-z_]|!\w+$|:[a-z_]+$"
    r"|(?:pk|price|prod|cus|acct)_|sha(?:1|256|384|512)[-:]|data:|(?:arn|urn):|ssh-"
    r"|(?:\w+\.)*\w+[(\[]|(?:vault|op|env|ref|file|s3|gs|https?|ssm)[:+]/?"
)
_INNER_REFERENCE: Final = re.compile(r"\$\{|\{\{|#\{|\{[A-Za-z_][\w.]{0,60}\}|://|\$\(")
#: Characters between the words of a name or of a path.
_BETWEEN: Final = re.compile(r"[-_./:\\ #@+,;|=~]+|->|(?<=[a-z])(?=[A-Z])")
#: A word, a number, or a word with a number at an end, such as `v2`, `sha256`, `2fa`.
_PART: Final = re.compile(r"[A-Za-z]*|\d{1,8}|[A-Za-z]{1,12}\d{1,4}|\d{1,2}[A-Za-z]{1,12}")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
_ALGORITHM: Final = re.compile(
    r"(?:sha|md|base|utf|aes|rsa|ed|argon|scrypt|bcrypt|pbkdf|hs|rs|es|ecdsa)-?\d", re.I
)
#: Password hashes of crypt(3), such as `$2b$12$` and `$argon2id$`. A hash is not the password.
_CRYPT: Final = re.compile(r"\$(?:\d[a-z]?|argon2\w{0,2}|pbkdf2[\w-]*|scrypt)\$")


def entropy(text: str) -> float:
    """Return the Shannon entropy of a text in bits for each character."""
    length = len(text)
    return -sum(n / length * log2(n / length) for n in Counter(text).values()) if text else 0.0


def is_placeholder(value: str) -> bool:
    """Return whether a value is one of documentation: with words such as `example`, or with runs."""
    return _WORDS.search(value) is not None


def is_reference(value: str) -> bool:
    """Return whether a value names another place, such as a variable, a template, a call or an address."""
    return _REFERENCE.match(value) is not None or _INNER_REFERENCE.search(value) is not None


def is_wordy(value: str) -> bool:
    """Return whether a value consists of words and numbers, as names, paths, dates and versions do."""
    return all(_PART.fullmatch(part) for part in _BETWEEN.split(value))


def is_random(body: str) -> bool:
    """Return whether the part of a key after its fixed beginning is random, and not a word."""
    if any(map(str.isdigit, body)) or not any(map(str.islower, body)):
        return not is_placeholder(body)
    switches = sum(a.islower() != b.islower() for a, b in pairwise(body))
    return switches * 4 >= len(body) and not is_placeholder(body)


def is_password(value: str) -> bool:
    """Return whether the value of a password's name is a password.

    Passwords that consist of words alone are not recognised: they look like descriptions.
    """
    if not 8 <= len(value) <= 400 or _is_told(value) or _ALGORITHM.match(value) or _UUID.fullmatch(value):
        return bool(_UUID.fullmatch(value))
    classes = sum(any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit, _is_symbol))
    if any(map(_is_symbol, value)) and classes >= 3:
        return True
    digits = sum(map(str.isdigit, value))
    if classes >= 2 and not is_wordy(value):
        return digits > 0
    return classes >= 2 and digits >= 3 and value.isalnum()


def is_token(value: str, *, is_strong: bool) -> bool:
    """Return whether the value of a token's or key's name is a secret.

    `is_strong` marks names that only secrets have. For other names, hashes and UUIDs are identifiers.
    """
    if not 12 <= len(value) <= 2_000 or _is_told(value):
        return False
    if _UUID.fullmatch(value):
        return is_strong
    if _HEX.fullmatch(value):
        return is_strong and len(value) >= 16 and not value.isdigit() and entropy(value) >= 2.5
    has_both = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    if not has_both and not (len(value) >= 20 and value.isalpha() and is_random(value)):
        return False
    return not is_wordy(value) and entropy(value) >= 3.0


def _is_told(value: str) -> bool:
    """Return whether a value is a placeholder, a reference or a password hash."""
    return is_reference(value) or is_placeholder(value) or _CRYPT.match(value) is not None


def _is_symbol(character: str) -> bool:
    return not character.isalnum() and character not in "-_./:\\ "
