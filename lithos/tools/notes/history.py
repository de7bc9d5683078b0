"""Tools that show earlier versions of notes and bring them back."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from lithos.core.errors import InvalidInput
from lithos.services.notes.history import HistoryRequest, NoteHistory
from lithos.services.notes.restoring import RestoreRequest, Restoring
from lithos.tools.contract.arguments import TAKES_BACK, argument, as_command, read_time, source_of
from lithos.tools.contract.bounds import LOOKUP, NAME, PATH
from lithos.tools.contract.registry import Answer, Tool
from lithos.tools.contract.rows import outcome_row, sliced_rows, version_row


@frozen
class HistoryArguments:
    """Parameters of `lithos_history`."""

    id: str | None = argument("Note id, also a deleted one.", None, bound=LOOKUP, note="kept")
    agent: str | None = argument("By this agent; of all notes without id.", None, bound=NAME)
    since: str | None = argument("Since then.", None, bound=LOOKUP)
    deleted: bool = argument("List deleted notes.", False)
    limit: int = argument("Most versions.", 20)
    offset: int = argument("Versions to skip.", 0, is_listed=False)
    before: int | None = argument("Versions below this one.", None)
    diff: str | None = argument(
        "Instead: the difference of versions 7..9, or that 7 made.",
        None,
        bound=NAME,
    )


@frozen
class RestoreArguments:
    """Parameters of `lithos_restore`."""

    id: str = argument("Note id, also a deleted one.", bound=LOOKUP, note="kept")
    version: int = argument("The version to bring back.")
    agent: str = argument("Your id.", bound=NAME)
    expected_version: int | None = argument("Refuse if the note has another version now.", None)
    #: For `lithos undo`: take back only what this version changed, and keep what came later.
    base: int | None = argument("Keep what changed since this version.", None, is_listed=False)
    dry_run: bool = argument("Only tell what would be done.", False, is_listed=False)
    #: The version that the note had when the undo began.
    undo: int | None = argument(TAKES_BACK, None, is_own=True)
    back_to: str | None = argument("Where a deleted note comes back.", None, bound=PATH, is_own=True)


class HistoryTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, history: NoteHistory, restoring: Restoring) -> None:
        self._history = history
        self._restoring = restoring

    def tools(self) -> Sequence[Tool]:
        """The family."""
        return (
            Tool(
                "lithos_history",
                "standard",
                "RI",
                "Versions of a note, changes of all notes by agent or time, deleted notes, or a diff.",
                HistoryArguments,
                self.history,
            ),
            Tool(
                "lithos_restore",
                "full",
                "D",
                "Write an earlier version of a note as its next one; a deleted note comes back.",
                RestoreArguments,
                self.restore,
            ),
        )

    async def history(self, given: HistoryArguments) -> Answer:
        """`lithos_history`."""
        if given.limit < 1 or given.offset < 0:
            raise InvalidInput("limit must be at least 1, and offset must not be negative.")
        note_id = given.id
        if given.diff is not None:
            return await self._diff(note_id, given.diff)
        since = read_time("since", given.since)
        if note_id is None and given.agent is None and since is None and not given.deleted:
            raise InvalidInput("Give the id of a note, or agent, since or deleted=true to look at all notes.")
        request = HistoryRequest(
            note_id=note_id,
            agent=given.agent,
            since=since,
            is_deleted=given.deleted,
            limit=given.limit,
            offset=given.offset,
            before=given.before,
        )
        listed = await self._history.list_versions(request)
        rows = await sliced_rows(listed.rows, version_row)
        if note_id is None:
            rows = [{"id": row.note_id} | told for row, told in zip(listed.rows, rows, strict=True)]
        return {"id": note_id, "versions": rows, "total": listed.total}

    async def _diff(self, note_id: str | None, text: str) -> Answer:
        if note_id is None:
            raise InvalidInput("diff needs the id of the note whose versions to compare.")
        found = await self._history.diff(note_id, text)
        return {
            "id": note_id,
            "from": found.from_version,
            "to": found.to_version,
            "diff": found.diff.text,
            "truncated": found.diff.is_truncated,
        }

    async def restore(self, given: RestoreArguments) -> Answer:
        """`lithos_restore`."""
        if given.base is not None and given.base < 1:
            raise InvalidInput(f"base must be a version of the note, 1 or more; {given.base} is none.")
        done = await self._restoring.restore(
            as_command(RestoreRequest, given, source=source_of(given.undo is not None))
        )
        if done.outcome is None:
            unchanged = {"status": "unchanged", "id": done.id, "path": done.path, "version": done.version}
            return {**unchanged, "warnings": []}
        merged = {} if done.merged_with is None else {"merged_with": done.merged_with}
        return outcome_row(done.outcome) | merged
