"""Result rows of search tools."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lithos.kernel.values.times import format_time
from lithos.search.service.search import Hit


def search_row(hit: Hit, now: datetime) -> dict[str, Any]:
    """Return one result row of `lithos_search`."""
    note = hit.entry.note
    row: dict[str, Any] = {
        "id": note.id,
        "title": note.title,
        "snippet": hit.snippet,
        "score": hit.score,
        "path": hit.entry.path,
        "source_url": note.source_url or "",
        "updated_at": format_time(note.updated_at),
        "is_stale": note.is_stale(now),
        "derived_from_ids": list(note.derived_from_ids),
    }
    if hit.similarity is not None:
        row["similarity"] = hit.similarity
    if hit.judged is not None:
        row["match"] = hit.judged.match
    return row
