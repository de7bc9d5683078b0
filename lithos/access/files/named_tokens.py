"""Named tokens as values, and as `tokens.json` rows with their grants (docs/spec/integration.md §3)."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Any, Final
from unicodedata import normalize

from attrs import field, frozen

from lithos.access.files.scope_rows import row_of_scope, scope_of_row
from lithos.access.model.grants import Access, Code, OAuthGrant
from lithos.kernel.values.principals import TOKEN_RIGHTS, Principal, Rights
from lithos.kernel.values.times import format_optional, format_time, parse_time
from lithos.notes.model.scopes import Scope

#: Maximum characters of a token name and of an agent id.
LONGEST_NAME: Final = 64
LONGEST_AGENT: Final = 200
#: Names of principals that a token cannot have.
RESERVED: Final = frozenset({"anyone", "auth_token", "owner"})
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._@-]*[A-Za-z0-9])?")
DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@frozen
class Token:
    """One named token. `digest` is the SHA-256 of its secret in hexadecimal.

    If a person granted the token to a client, the token has a `grant` with the hashes of the secrets. The
    `digest` of such a token matches no secret and only identifies the grant.
    """

    name: str
    digest: str = field(repr=False)
    rights: Rights
    agent: str | None
    created_at: datetime
    expires_at: datetime | None
    grant: OAuthGrant | None = None
    #: Paths that the token may change (docs/spec/scopes.md §1), or None for all paths.
    scope: Scope | None = None
    #: Whether the token is valid in every vault, including future vaults (`access/service/vault_tokens.py`).
    every_vault: bool = False

    @property
    def is_pending(self) -> bool:
        """Return whether this is a grant whose client has not yet fetched its tokens.

        A grant whose client never fetches its tokens is deleted automatically.
        """
        return self.grant is not None and not self.grant.code.is_used

    def has_expired(self, now: datetime) -> bool:
        """Return whether the token is no longer valid."""
        if self.grant is not None and self.grant.has_ended(now):
            return True
        return self.expires_at is not None and now >= self.expires_at

    @property
    def principal(self) -> Principal:
        """Return the principal of callers that use this token."""
        is_connector = self.grant is not None
        return Principal(self.name, self.rights, self.agent, mark=self.digest[:16], is_connector=is_connector)


@frozen
class TokenFile:
    """Content of a token file."""

    tokens: tuple[Token, ...] = ()
    #: Digests of revoked tokens that were valid in every vault. With them, a vault that was absent cannot
    #: restore a revoked token.
    gone: tuple[str, ...] = ()


def digest_of(secret: bytes) -> str:
    """Return the hash of a secret, which is the form in which it is stored."""
    return hashlib.sha256(secret).hexdigest()


def token_of_row(row: dict[str, Any]) -> Token:
    """Return the token that a row describes. Raises parse errors for a damaged row."""
    token = Token(
        name=check_name(row["name"]),
        digest=row["hash"],
        rights=row["rights"],
        agent=None if row["agent"] is None else check_agent(row["agent"]),
        created_at=parse_time(row["created_at"]),
        expires_at=None if row["expires_at"] is None else parse_time(row["expires_at"]),
        grant=_grant_of_row(row["grant"]) if "grant" in row else None,
        scope=scope_of_row(row),
        every_vault=row.get("every_vault", False) is True,
    )
    if token.rights not in TOKEN_RIGHTS or not DIGEST.fullmatch(token.digest):
        raise ValueError("its rights are invalid, or its hash is missing")
    return token


def check_name(name: str) -> str:
    """Check that a token name is safe in messages, logs and file lists. Raises `ValueError`."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise ValueError(
            f"A token name must have 1 to {LONGEST_NAME} letters, digits, dots, dashes, "
            "underscores or @, and must begin and end with a letter or digit."
        )
    if name in RESERVED:
        raise ValueError(f"The name '{name}' is reserved. Choose another name.")
    return name


def check_agent(agent: str) -> str:
    """Return an agent id in Unicode form NFC that every tool accepts. Raises `ValueError`."""
    is_text = isinstance(agent, str) and agent.isprintable()
    if not is_text or not agent or agent.strip() != agent or len(agent) > LONGEST_AGENT:
        raise ValueError(
            f"An agent id must have 1 to {LONGEST_AGENT} printable characters, without spaces at its ends."
        )
    return normalize("NFC", agent)


def check_scope(rights: Rights, scope: Scope | None) -> None:
    """Raise `ValueError` if a scope is combined with read-only rights."""
    if scope is not None and rights in ("metrics", "read"):
        raise ValueError(
            f"A token with the rights {rights} cannot change notes, so --write and --propose are "
            "not allowed. Omit them, or use --rights write."
        )


def row_of_token(token: Token) -> dict[str, Any]:
    """Return the row of a token for `tokens.json`."""
    grant = {} if token.grant is None else {"grant": _row_of_grant(token.grant)}
    return {
        "name": token.name,
        "hash": token.digest,
        "agent": token.agent,
        "rights": token.rights,
        "created_at": format_time(token.created_at),
        "expires_at": format_optional(token.expires_at),
        **row_of_scope(token.scope),
        **({"every_vault": True} if token.every_vault else {}),
        **grant,
    }


def _row_of_grant(grant: OAuthGrant) -> dict[str, Any]:
    """Return the row of a grant for `tokens.json`."""
    code = grant.code
    return {
        "client_id": grant.client_id,
        "client_name": grant.client_name,
        "resource": grant.resource,
        "used_at": format_time(grant.used_at),
        "code": {
            "hash": code.digest,
            "expires_at": format_time(code.expires_at),
            "redirect_uri": code.redirect_uri,
            "challenge": code.challenge,
            "used": code.is_used,
        },
        "access": [{"hash": one.digest, "expires_at": format_time(one.expires_at)} for one in grant.access],
        "family": grant.family,
        "refresh": grant.refresh,
        "former": grant.former,
        "replaced_at": format_optional(grant.replaced_at),
    }


def _grant_of_row(row: dict[str, Any]) -> OAuthGrant:
    """Return the grant that a row describes.

    Raises `KeyError`, `TypeError` or `ValueError` for a damaged row.
    """
    code, replaced_at = row["code"], row["replaced_at"]
    return OAuthGrant(
        client_id=_text(row["client_id"]),
        client_name=_text(row["client_name"]),
        resource=_text(row["resource"]),
        code=Code(
            _text(code["hash"]),
            parse_time(code["expires_at"]),
            _text(code["redirect_uri"]),
            _text(code["challenge"]),
            code["used"] is not False,
        ),
        used_at=parse_time(row["used_at"]),
        access=tuple(_access(one) for one in row["access"]),
        family=_text(row["family"]),
        refresh=_text(row["refresh"]),
        former=_text(row["former"]),
        replaced_at=None if replaced_at is None else parse_time(replaced_at),
    )


def _access(row: dict[str, Any]) -> Access:
    bytes.fromhex(row["hash"])
    return Access(row["hash"], parse_time(row["expires_at"]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value
