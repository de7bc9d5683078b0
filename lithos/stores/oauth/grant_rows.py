"""Grants as rows of `tokens.json`."""

from __future__ import annotations

from typing import Any

from lithos.core.oauth.grants import Access, Code, Grant
from lithos.core.times import format_optional, format_time, parse_time


def row_of_grant(grant: Grant) -> dict[str, Any]:
    """What is written of a grant."""
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


def grant_of_row(row: dict[str, Any]) -> Grant:
    """The grant of a row. Raises `KeyError`, `TypeError` and `ValueError` for one that is damaged."""
    code, replaced_at = row["code"], row["replaced_at"]
    return Grant(
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
