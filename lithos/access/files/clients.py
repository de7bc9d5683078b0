"""`.lithos/oauth_clients.json`: clients that registered themselves, and clients that a command added.

Registered clients are deleted after a day unless a grant uses them. A damaged file counts as empty. The next
change replaces it, and clients must register again.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from lithos.access.files.private_file import locked, replace_private
from lithos.access.model.clients import OAuthClient
from lithos.access.model.redirects import check_redirects
from lithos.kernel.databases.private_files import PRIVATE_FOLDER
from lithos.kernel.values.times import format_time, parse_time

CLIENTS: Final = "oauth_clients.json"
_LOCK: Final = "oauth_clients.lock"
#: Maximum number of clients, and period after which a registered client without a grant is deleted.
MOST_CLIENTS: Final = 500
UNUSED: Final = timedelta(hours=24)
#: Maximum size of the file in bytes. All clients with fields of maximum length fit into it.
LARGEST: Final = 8 * 1024 * 1024


class ClientsFull(Exception):
    """Error for a new client when all `MOST_CLIENTS` stored clients are in use or new."""


class ClientStore:
    """The stored clients of a data directory.

    All methods may block and raise `OSError`. Changes also raise `LockTimeout`.
    """

    def __init__(self, private: Path) -> None:
        """Store the clients in `private`, the `.lithos` folder of the data directory."""
        self.path = private / CLIENTS
        self._lock = private / _LOCK

    def read(self) -> tuple[OAuthClient, ...]:
        """Return all clients, including clients that are due for deletion."""
        try:
            with self.path.open("rb") as file:
                data = file.read(LARGEST + 1)
            return tuple(map(_client_of, json.loads(data)["clients"])) if len(data) <= LARGEST else ()
        except FileNotFoundError:
            return ()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return ()

    def find(self, client_id: str) -> OAuthClient | None:
        """Return the client with this id."""
        return next((each for each in self.read() if each.id == client_id), None)

    def add(self, client: OAuthClient, in_use: Collection[str], now: datetime) -> None:
        """Store a client and delete unused clients. `in_use` contains the ids of all clients with grants.

        Raises `ClientsFull`.
        """
        self.path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        with locked(self._lock):
            kept = [each for each in self.read() if _is_kept(each, in_use, now)]
            if len(kept) >= MOST_CLIENTS:
                raise ClientsFull
            self._write([*kept, client])

    def remove(self, client_id: str) -> bool:
        """Delete a client. Return whether the client existed."""
        with locked(self._lock):
            clients = self.read()
            left = [each for each in clients if each.id != client_id]
            if len(left) < len(clients):
                self._write(left)
        return len(left) < len(clients)

    def _write(self, clients: list[OAuthClient]) -> None:
        replace_private(self.path, {"version": 1, "clients": [_row_of(each) for each in clients]})


def _is_kept(client: OAuthClient, in_use: Collection[str], now: datetime) -> bool:
    # A registration time in the future means that the clock was set back after the registration.
    is_new = timedelta(0) <= now - client.created_at < UNUSED
    return client.is_added or client.id in in_use or is_new


def _client_of(row: dict[str, Any]) -> OAuthClient:
    uris = check_redirects(row["redirect_uris"])
    return OAuthClient(
        str(row["client_id"]), str(row["name"]), uris, parse_time(row["created_at"]), row["added"] is True
    )


def _row_of(client: OAuthClient) -> dict[str, Any]:
    return {
        "client_id": client.id,
        "name": client.name,
        "redirect_uris": list(client.redirect_uris),
        "created_at": format_time(client.created_at),
        "added": client.is_added,
    }
