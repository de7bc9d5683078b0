"""Entries for the full-text tests."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from lithos.stores.indexes.fulltext_schema import FulltextEntry

MOMENT = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)


def entry(serial: int, body: str = "", **changes: Any) -> FulltextEntry:
    values: dict[str, Any] = {
        "stamp": serial * 10 + 1,
        "id": f"id-{serial}",
        "title": f"Note {serial}",
        "headings": "",
        "entities": (),
        "tags": (),
        "author": "ana",
        "path": f"inbox/{serial}.md",
        "namespace": "inbox",
        "updated_at": MOMENT,
    }
    return FulltextEntry(serial=serial, body=body, **(values | changes))
