"""Creation of the secrets of a grant, and storage of grants among the named tokens."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from attrs import field, frozen

from lithos.access.files.tokens import LONGEST_NAME, MOST_TOKENS, Token, digest_of
from lithos.access.model.grants import ACCESS_LIFE, Issued, OAuthGrant
from lithos.access.model.requests import OAuthRefused, scope_text

#: Prefixes of the secrets. People and scanners recognise a leaked secret by them.
_CODE, _ACCESS, _REFRESH = "lithos_c_", "lithos_a_", "lithos_r_"
#: Number of characters of the first word of a refresh token. This word identifies the grant.
_FAMILY: Final = 22


@frozen
class Pair:
    """A new pair of access token and refresh token."""

    access: str = field(repr=False)
    refresh: str = field(repr=False)

    @classmethod
    def make(cls, family: str | None = None) -> Pair:
        word = family or secrets.token_urlsafe(16)[:_FAMILY]
        return cls(f"{_ACCESS}{secrets.token_urlsafe(32)}", f"{_REFRESH}{word}{secrets.token_urlsafe(32)}")

    @property
    def issued(self) -> Issued:
        return Issued(
            digest_text(self.access), digest_text(self.refresh), digest_text(family_of(self.refresh) or "")
        )


def make_code() -> str:
    """Return a new authorization code."""
    return f"{_CODE}{secrets.token_urlsafe(32)}"


def digest_text(secret: str) -> str:
    return digest_of(secret.encode("utf-8", "replace"))


def family_of(refresh: str) -> str | None:
    """Return the first word of a refresh token. Return None for any other text."""
    word = refresh.removeprefix(_REFRESH)[:_FAMILY]
    return word if refresh.startswith(_REFRESH) and len(word) == _FAMILY else None


def unknown_grant() -> OAuthRefused:
    return OAuthRefused(
        "invalid_grant", "The code or token is not valid here: wrong, expired or revoked. Start again."
    )


def resource_of(given: Mapping[str, str]) -> str | None:
    return given["resource"].removesuffix("/") if "resource" in given else None


def tell_pair(pair: Pair, token: Token) -> dict[str, Any]:
    return {
        "access_token": pair.access,
        "token_type": "Bearer",
        "expires_in": int(ACCESS_LIFE.total_seconds()),
        "refresh_token": pair.refresh,
        "scope": scope_text(token.rights),
    }


def split_off(
    tokens: Sequence[Token], is_it: Callable[[OAuthGrant], bool]
) -> tuple[Sequence[Token], str | None]:
    found = next((each for each in tokens if each.grant is not None and is_it(each.grant)), None)
    return [each for each in tokens if each is not found], None if found is None else found.name


def without_ended(tokens: Sequence[Token], now: datetime) -> list[Token]:
    """Return the tokens without the grants whose code expired unused.

    If space is short, ended grants are dropped too, and the longest unused grant is dropped first. As few
    grants as possible are dropped, because a wrong clock may make every grant seem ended.
    """
    kept = [
        each for each in tokens if each.grant is None or each.grant.code.is_used or not each.has_expired(now)
    ]
    ended = [each for each in kept if each.grant is not None and each.has_expired(now)]
    surplus = max(0, len(kept) - MOST_TOKENS + 1)
    gone = sorted(ended, key=_last_used)[:surplus]
    return [each for each in kept if each not in gone]


def _last_used(token: Token) -> datetime:
    assert token.grant is not None
    return token.grant.used_at


def free_name(wanted: str, taken: set[str]) -> str:
    """Return an unused token name that is similar to the client name."""
    signs = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in wanted.lower())
    base = "-".join(filter(None, signs.split("-")))[: LONGEST_NAME - 8].strip("-") or "client"
    names = (f"{base}-{number}" for number in range(1, MOST_TOKENS + 2))
    return next(name for name in names if name not in taken)
