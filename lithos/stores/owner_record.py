"""What `.lithos/lock` tells about the owner of a data directory (lifecycle spec, section 2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attrs import asdict, field, frozen


@frozen
class OwnerRecord:
    """Who owns the data directory; `started_at` is ISO 8601 in UTC."""

    pid: int
    host: str
    url: str | None
    started_at: str
    token: str | None = field(default=None, repr=False)


def encode_owner(record: OwnerRecord) -> bytes:
    """The content of the lock file."""
    content: dict[str, Any] = {key: value for key, value in asdict(record).items() if value is not None}
    return json.dumps(content).encode()


def read_owner(path: Path) -> OwnerRecord | None:
    """The record in a lock file, or None when there is none that can be read."""
    try:
        content = json.loads(path.read_bytes())
        return OwnerRecord(
            pid=int(content["pid"]),
            host=str(content["host"]),
            url=content.get("url"),
            started_at=str(content["started_at"]),
            token=content.get("token"),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
