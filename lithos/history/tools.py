"""Tools that show earlier versions of notes and restore them."""

from __future__ import annotations

from lithos.history.service.history import HistoryRequest, NoteHistory
from lithos.history.service.restoring import RestoreRequest, Restoring
from lithos.kernel.parts import Parts
from lithos.kernel.values.errors import InvalidInput
from lithos.notes.tools_rows import WRITTEN
from lithos.server.tools.arguments import TAKES_BACK, argument, as_command, read_time, source_of
from lithos.server.tools.bounds import LOOKUP, NAME, PATH
from lithos.server.tools.compacting import CompactForm
from lithos.server.tools.declaring import Answer, tool
from lithos.server.tools.fitting import CuttableAnswer
from lithos.server.tools.serialization import row_of, sliced_rows


@tool(
    "lithos_history",
    "standard",
    "RI",
    place=42,
    title="Show note history",
    paged=CuttableAnswer(rows=("versions",)),
    sparing=CompactForm(always=("versions", "total", "diff"), unsaid=("hash", "size")),
)
class HistoryTool:
    """List the versions of a note, recent changes of all notes by agent or time, or deleted notes, or show
    the diff between two versions.
    """

    id: str | None = argument("Id of the note, which may be deleted.", None, bound=LOOKUP, note="kept")
    changed_by: str | None = argument(
        "Only changes by this agent; omit for all agents.", None, bound=NAME, filters_agent=True
    )
    since: str | None = argument("Only changes since this ISO time.", None, bound=LOOKUP)
    deleted: bool = argument("List the deleted notes.", False)
    limit: int = argument("Maximum number of versions.", 20)
    offset: int = argument("Number of versions to skip.", 0, is_listed=False)
    before: int | None = argument("Only versions below this number.", None, is_rare=True)
    diff: str | None = argument(
        "Versions to compare, e.g. 7..9.",
        None,
        bound=NAME,
    )

    async def answer(self, using: Parts) -> Answer:
        if self.limit < 1 or self.offset < 0:
            raise InvalidInput("limit must be at least 1, and offset must be at least 0.")
        note_id = self.id
        if self.diff is not None:
            return await _diff(using.get(NoteHistory), note_id, self.diff)
        since = read_time("since", self.since)
        if note_id is None and self.changed_by is None and since is None and not self.deleted:
            raise InvalidInput(
                "Give the id of a note, or give changed_by, since or deleted=true to list "
                "changes of all notes."
            )
        request = as_command(
            HistoryRequest,
            self,
            note_id=note_id,
            agent=self.changed_by,
            since=since,
            is_deleted=self.deleted,
        )
        listed = await using.get(NoteHistory).list_versions(request)
        rows = await sliced_rows(listed.rows, row_of)
        if note_id is None:
            rows = [{"id": row.note_id} | told for row, told in zip(listed.rows, rows, strict=True)]
        return {"id": note_id, "versions": rows, "total": listed.total}


@tool(
    "lithos_restore", "standard", "D", place=44, title="Restore a version", counts="restore", sparing=WRITTEN
)
class RestoreTool:
    """Restore an earlier version of a note as its newest version, or bring back a deleted note."""

    id: str = argument("Id of the note, which may be deleted.", bound=LOOKUP, note="kept")
    version: int | None = argument("Version to restore.", None)
    #: Number of a history row, for a version that has several rows.
    row: int | None = argument(
        "Number of the history row to restore; replaces version.", None, is_listed=False
    )
    agent: str = argument("Your agent id.", bound=NAME)
    expected_version: int | None = argument("Fail unless this is the current version.", None, is_rare=True)
    #: Used by `lithos undo` to undo only the change of this version and keep later changes.
    base: int | None = argument(
        "Undo only the change of this version; keep all later changes.", None, is_listed=False
    )
    dry_run: bool = argument(
        "Only report what would be done, without changing anything.", False, is_listed=False
    )
    #: Version of the note when the undo began.
    undo: int | None = argument(TAKES_BACK, None, is_own=True)
    back_to: str | None = argument("Path where a deleted note is restored.", None, bound=PATH, is_own=True)

    async def answer(self, using: Parts) -> Answer:
        if self.base is not None and self.base < 1:
            raise InvalidInput(f"base must be a version of the note, at least 1, not {self.base}.")
        done = await using.get(Restoring).restore(
            as_command(RestoreRequest, self, source=source_of(self.undo is not None))
        )
        if done.outcome is None:
            unchanged = {"status": "unchanged", "id": done.id, "path": done.path, "version": done.version}
            return {**unchanged, "warnings": []}
        merged = {} if done.merged_with is None else {"merged_with": done.merged_with}
        return row_of(done.outcome) | merged


async def _diff(history: NoteHistory, note_id: str | None, text: str) -> Answer:
    if note_id is None:
        raise InvalidInput("diff needs the id of the note whose versions to compare.")
    found = await history.diff(note_id, text)
    return {
        "id": note_id,
        "from": found.from_version,
        "to": found.to_version,
        **({} if found.rows is None else {"from_row": found.rows[0], "to_row": found.rows[1]}),
        "diff": found.diff.text,
        "truncated": found.diff.is_truncated,
    }
