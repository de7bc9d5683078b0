"""Conflict copy tools, for a person at the console or a terminal (docs/spec/copies.md §2)."""

from __future__ import annotations

from typing import Any

from lithos.history.service.conflict_copies import ConflictCopies, ListedCopy, ShownCopy, conflict_rows
from lithos.kernel.parts import Parts
from lithos.server.tools.arguments import argument
from lithos.server.tools.bounds import IDS, LOOKUP, NAME, PATH
from lithos.server.tools.declaring import OWN, Answer, tool
from lithos.server.tools.fitting import CuttableAnswer
from lithos.server.tools.serialization import row_of


@tool("lithos_conflict_copies", OWN, "RI", place=48, paged=CuttableAnswer(rows=("copies",)))
class ConflictCopiesTool:
    """List conflict copies (versions of notes that another machine wrote), or show how one would merge."""

    path: str | None = argument("Path of one copy, to show its merge.", None, bound=PATH)
    limit: int = argument("Maximum number of copies.", 50, is_listed=False)
    offset: int = argument("Number of copies to skip.", 0, is_listed=False)

    async def answer(self, using: Parts) -> Answer:
        if self.path is not None:
            return shown_row(await using.get(ConflictCopies).show(self.path))
        found = using.get(ConflictCopies).listed()
        page = found[max(self.offset, 0) :][: max(self.limit, 0)]
        return {"copies": [row_of(each) for each in page], "total": len(found)}


@tool("lithos_conflict_copy_merge", OWN, "D", place=49)
class ConflictCopyMergeTool:
    """Merge a conflict copy into its note and remove it, for a person at the console or a terminal."""

    path: str = argument("Path of the conflict copy.", bound=PATH)
    by: str = argument("Name of the person.", bound=NAME)
    keep: list[str] | None = argument("Side to keep for each conflict: note, copy or both.", None, bound=IDS)
    seal: str | None = argument("Seal of the merge that the person saw.", None, bound=LOOKUP)

    async def answer(self, using: Parts) -> Answer:
        merged = await using.get(ConflictCopies).merge(self.path, self.by, self.keep, self.seal)
        return {"status": "merged", **row_of(merged)}


@tool("lithos_conflict_copy_keep", OWN, "I", place=53)
class ConflictCopyKeepTool:
    """Permanently keep a file as a separate note. Use it when a person has confirmed that the file is not a
    conflict copy.
    """

    path: str = argument("Path of the file.", bound=PATH)

    async def answer(self, using: Parts) -> Answer:
        return {"status": "kept", **row_of(await using.get(ConflictCopies).keep(self.path))}


def shown_row(shown: ShownCopy) -> dict[str, Any]:
    """Return the row of a copy and its merge. In `merged`, conflicts are between markers."""
    copy: ListedCopy = shown.listed
    merge = shown.merge
    return {
        "copy": row_of(copy),
        "version": shown.version,
        "merged": None if merge.pieces is None else merge.marked(copy.note_path, copy.path),
        "conflicts": conflict_rows(shown),
        "adds_nothing": shown.adds_nothing,
        "changes_nothing": shown.changes_nothing,
        "has_ancestor": merge.has_ancestor,
        "seal": shown.seal,
    }
