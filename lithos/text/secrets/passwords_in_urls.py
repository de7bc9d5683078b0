"""Passwords in addresses, such as `postgres://user:PASSWORD@host` (RFC 3986, user information)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lithos.text.secrets.placeholders import is_placeholder, is_reference

KIND: Final = "password in url"
#: What follows the scheme. The user may be empty (Redis). A port or a path ends the search.
_USER_INFO: Final = re.compile(
    r"://[^\s:@/\"'`<>|\\]{0,128}:(?P<password>[^\s@/\"'`<>|\\]{3,256})@(?=[A-Za-z0-9\[$_-])"
)
#: Words that stand for a password in documentation and in local set-ups.
_COMMON: Final = frozenset({
    "password", "passwd", "pass", "pwd", "secret", "user", "username", "admin", "root", "postgres",
    "mysql", "guest", "test", "token", "pw", "abc", "foo", "bar", "x-oauth-basic", "x-access-token",
    "oauth2", "minioadmin", "rabbitmq", "mongo", "redis", "dev", "development", "local", "localhost",
})  # fmt: skip


def passwords_in_urls(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield begin, end and kind of each password in an address."""
    at = text.find("://")
    while at >= 0:
        found = _USER_INFO.match(text, at)
        if found is not None and _is_real(found["password"]):
            yield *found.span("password"), KIND
        at = text.find("://", at + 3)


def _is_real(password: str) -> bool:
    if len(password) < 5 or password.lower() in _COMMON or password.isdigit():
        return False
    return not is_reference(password) and not is_placeholder(password) and not _is_word(password)


def _is_word(password: str) -> bool:
    """Return whether a password describes itself, such as `my_db_password` or `PASSWORD1`."""
    return (
        re.search(r"pass|pwd|secret|token", password, re.IGNORECASE) is not None
        and password.isascii()
        and (re.fullmatch(r"[A-Za-z_-]+\d{0,2}", password) is not None)
    )
