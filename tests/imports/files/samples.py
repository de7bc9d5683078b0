"""The samples in `tests/data/import`, and the sources by their command line names."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lithos.imports.files.basic_memory import BasicMemory
from lithos.imports.files.claude_memory import ClaudeMemory
from lithos.imports.files.conversations import chatgpt_source, claude_source
from lithos.imports.files.server_memory import ServerMemory
from lithos.imports.model.importing import Item, Malformed, Record, Source

DATA: Final = Path(__file__).parents[2] / "data" / "import"
EXPECTED: Final[Mapping[str, Any]] = json.loads((DATA / "EXPECTED.json").read_text(encoding="utf-8"))
SOURCES: Final[Mapping[str, Source]] = {
    source.kind: source
    for source in (BasicMemory(), ServerMemory(), ClaudeMemory(), chatgpt_source(), claude_source())
}


def read(kind: str, path: Path) -> list[Item]:
    return list(SOURCES[kind].read(path))


def records(items: Sequence[Item]) -> dict[str, Record]:
    """Return the records by id. Each record must have a unique id."""
    found = [item for item in items if isinstance(item, Record)]
    assert len({record.id for record in found}) == len(found)
    return {record.id: record for record in found}


def measure_peak(source: Source, path: Path) -> tuple[int, int]:
    """Return the number of items in a file, and the peak memory in bytes while the file is read."""
    tracemalloc.start()
    try:
        return sum(1 for _ in source.read(path)), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def skipped(items: Sequence[Item]) -> dict[str, str]:
    """Return the position and the reason of each skipped item."""
    return {item.position: item.reason for item in items if isinstance(item, Malformed)}
