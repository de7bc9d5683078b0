"""`.lithos/login_links.json`: links with which the operator logs in to the console. Each link works once."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from lithos.access.files.private_file import locked, replace_private
from lithos.kernel.databases.private_files import PRIVATE_FOLDER
from lithos.kernel.values.times import format_time, parse_time

LINKS: Final = "login_links.json"
_LOCK: Final = "login_links.lock"
#: Lifetime of a link, and maximum number of links. The oldest link is deleted first.
LIFE: Final = timedelta(minutes=10)
MOST_LINKS: Final = 20
_LARGEST: Final = 64 * 1024


class LoginLinks:
    """The login links of a data directory, stored as hashes.

    All methods may block and raise `OSError` and `LockTimeout`.
    """

    def __init__(self, private: Path) -> None:
        """Store the links in `private`, the `.lithos` folder of the data directory."""
        self._path = private / LINKS
        self._lock = private / _LOCK

    def make(self, now: datetime) -> str:
        """Create a link and return its secret."""
        secret = secrets.token_urlsafe(32)
        self._path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        with locked(self._lock):
            self._write([*self._read(now), (_digest(secret), now + LIFE)][-MOST_LINKS:])
        return secret

    def take(self, secret: str, now: datetime) -> bool:
        """Invalidate the link, and return whether it was valid."""
        digest = _digest(secret)
        with locked(self._lock):
            links = self._read(now)
            left = [each for each in links if not hmac.compare_digest(each[0], digest)]
            if len(left) == len(links):
                return False
            self._write(left)
        return True

    def _read(self, now: datetime) -> list[tuple[str, datetime]]:
        """Return the valid links. If the file is damaged, return an empty list."""
        try:
            with self._path.open("rb") as file:
                rows = json.loads(file.read(_LARGEST))["links"]
            links = [(str(row["hash"]), parse_time(row["expires_at"])) for row in rows]
        except FileNotFoundError:
            return []
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return []
        return [each for each in links if timedelta(0) < each[1] - now <= LIFE]

    def _write(self, links: list[tuple[str, datetime]]) -> None:
        rows = [{"hash": digest, "expires_at": format_time(end)} for digest, end in links]
        replace_private(self._path, {"version": 1, "links": rows})


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
