"""Entries for the full-text tests, and the results of a query."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_schema import Filters, FulltextEntry
from lithos.text.query import parse_query

ANYTHING = Filters()
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


def found(index: FulltextIndex, text: str, filters: Filters = ANYTHING) -> list[int]:
    tree = parse_query(text)
    assert tree is not None
    return [serial for serial, _ in index.search(tree, 50, filters)]
