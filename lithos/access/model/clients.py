"""OAuth clients: their known properties, and the documents in which they describe themselves.

A client is known by its metadata document (the client id is the address of the document), by registration, or
by a command. All clients are public, which means that they have no secret.
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
from lithos.kernel.values.graphemes import beginning

#: Maximum characters of a client id, and of a stored client name.
LONGEST_ID: Final = 500
LONGEST_NAME: Final = 80
#: Prefix of client ids that this server assigns.
OWN_PREFIX: Final = "lithos-client-"
_LARGEST_PORT: Final = 65_535
_DOCUMENT: Final = re.compile(
    r"https://[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+(?::(?P<port>[1-9][0-9]{0,4}))?"
    r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~!$&'()*+,;=:@%-]+)+/?"
)


@frozen
class OAuthClient:
    """One OAuth client.

    `is_added` means that the operator added the client by a command. Such a client is never deleted
    automatically.
    """

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    created_at: datetime
    is_added: bool = False

    @property
    def host(self) -> str:
        """Return the host in the client id.

        Return "" for a registered client, because its origin is unknown.
        """
        return urlsplit(self.id).netloc if is_document(self.id) else ""


def is_document(client_id: str) -> bool:
    """Return whether an id is the address of a metadata document, in the only valid spelling."""
    found = None if len(client_id) > LONGEST_ID else _DOCUMENT.fullmatch(client_id)
    if found is None or int(found["port"] or 443) > _LARGEST_PORT:
        return False
    return not re.search(r"%(?:2e|2f|5c)", client_id, re.IGNORECASE)


def read_document(document: Any, client_id: str, now: datetime) -> OAuthClient:
    """Return the client that a metadata document describes. Raises `OAuthRefused`."""
    if not isinstance(document, Mapping) or document.get("client_id") != client_id:
        raise OAuthRefused("invalid_client", "The metadata document contains another client_id.")
    method = document.get("token_endpoint_auth_method", "none")
    if method != "none" or "client_secret" in document:
        raise OAuthRefused("invalid_client", "The metadata document does not describe a public client.")
    return _read(document, client_id, now, "invalid_client")


def read_registration(document: Any, client_id: str, now: datetime) -> OAuthClient:
    """Return the client that a registration request describes (RFC 7591). Raises `OAuthRefused`."""
    if not isinstance(document, Mapping):
        raise OAuthRefused("invalid_client_metadata", "Send a single JSON object with redirect_uris.")
    return _read(document, client_id, now, "invalid_redirect_uri")


def _read(document: Mapping[str, Any], client_id: str, now: datetime, error: str) -> OAuthClient:
    try:
        uris = check_redirects(document.get("redirect_uris"))
    except ValueError as problem:
        raise OAuthRefused(error, f"{problem}.") from None
    return OAuthClient(client_id, read_name(document.get("client_name")), uris, now)


def read_name(given: object) -> str:
    """Return the display name of a client: printable, on one line, and truncated."""
    text = given if isinstance(given, str) else ""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text[:1_000]).split())
    return beginning(line, LONGEST_NAME) or "a client without a name"
