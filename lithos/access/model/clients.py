"""Clients: their known properties, and the documents by which they describe themselves.

A client is known by its metadata document (its id is the address of that), by registration, or by a command.
All are public: none has a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import frozen

from lithos.access.model.redirects import check_redirects
from lithos.access.model.requests import OAuthRefused

#: Characters of an id, and of a name as it is kept.
LONGEST_ID: Final = 500
LONGEST_NAME: Final = 80
#: How the ids begin that this server gives.
OWN_PREFIX: Final = "lithos-client-"
_LARGEST_PORT: Final = 65_535
_DOCUMENT: Final = re.compile(
    r"https://[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+(?::(?P<port>[1-9][0-9]{0,4}))?"
    r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~!$&'()*+,;=:@%-]+)+/?"
)


@frozen
class OAuthClient:
    """A client; `is_added`: the operator added it by a command, so it is kept."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    created_at: datetime
    is_added: bool = False

    @property
    def host(self) -> str:
        """The host of its id; empty for a client that registered itself, whose origin is unknown."""
        return urlsplit(self.id).netloc if is_document(self.id) else ""


def is_document(client_id: str) -> bool:
    """Whether an id is the address of a metadata document, in its one spelling."""
    found = None if len(client_id) > LONGEST_ID else _DOCUMENT.fullmatch(client_id)
    if found is None or int(found["port"] or 443) > _LARGEST_PORT:
        return False
    return not re.search(r"%(?:2e|2f|5c)", client_id, re.IGNORECASE)


def read_document(document: Any, client_id: str, now: datetime) -> OAuthClient:
    """The client that a metadata document describes. Raises `OAuthRefused`."""
    if not isinstance(document, Mapping) or document.get("client_id") != client_id:
        raise OAuthRefused("invalid_client", "The metadata document does not have this client_id.")
    method = document.get("token_endpoint_auth_method", "none")
    if method != "none" or "client_secret" in document:
        raise OAuthRefused("invalid_client", "The metadata document is not of a public client.")
    return _read(document, client_id, now, "invalid_client")


def read_registration(document: Any, client_id: str, now: datetime) -> OAuthClient:
    """The client that a request for registration describes (RFC 7591). Raises `OAuthRefused`."""
    if not isinstance(document, Mapping):
        raise OAuthRefused("invalid_client_metadata", "Send one JSON object with redirect_uris.")
    return _read(document, client_id, now, "invalid_redirect_uri")


def _read(document: Mapping[str, Any], client_id: str, now: datetime, error: str) -> OAuthClient:
    try:
        uris = check_redirects(document.get("redirect_uris"))
    except ValueError as problem:
        raise OAuthRefused(error, f"{problem}.") from None
    return OAuthClient(client_id, read_name(document.get("client_name")), uris, now)


def read_name(given: object) -> str:
    """A client's name, for a person: printable, in one line, cut."""
    text = given if isinstance(given, str) else ""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text[:1_000]).split())
    return line[:LONGEST_NAME] or "a client without a name"
