"""Undo: reverse the changes of an agent in a time span, note by note, while other agents keep working.

The plan is made from version rows (`history.model.undo`). Every step reads the note again and sends the
version that it read, so a concurrent change is never overwritten. If the note changed, the step is repeated.
The versions by the undoing agent and the texts of the notes show which changes are already undone. The
service calls tools. The command line can therefore run the same undo over HTTP that the console runs in the
server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

import attrs
from attrs import define, field, frozen

from lithos.history.model.undo import UndoStep, interleave, is_undone, plan_steps, since_by_others, split_step
from lithos.kernel.values.principals import CLI_AGENT, UNDO_AGENT
from lithos.kernel.values.times import format_time, parse_time
from lithos.notes.model.versions import DELETED, VersionRow

#: Maximum number of changes per undo.
MOST_CHANGES: Final = 100_000
#: Number of versions requested per call.
PAGE: Final = 200
#: Maximum number of attempts at a step if the note changes meanwhile.
RETRIES: Final = 5

REVERTED: Final = "reverted"
MERGED: Final = "merged"
REMOVED: Final = "deleted"
RETURNED: Final = "restored"
UNDONE: Final = "nothing to do"
LEFT: Final = "not reverted"
RESULTS: Final = (REVERTED, MERGED, REMOVED, RETURNED, UNDONE, LEFT)
#: Status of an answer if the change waits for approval by a person.
_PROPOSED: Final = "proposed"


class ToolCalls(Protocol):
    """Calls tools, either in this process or over HTTP in a running server."""

    async def call(self, tool: str, arguments: Mapping[str, Any], /) -> Mapping[str, Any] | None:
        """Return the answer of a tool."""


class UndoFailed(Exception):
    """The error raised if the changes cannot be listed. The message has the reason and the next step."""


@frozen
class UndoResult:
    """The result of a step: the new version of the note, or the reason why it was not changed."""

    step: UndoStep
    result: str
    version: int | None = None
    reason: str = ""

    def to_row(self) -> dict[str, Any]:
        """Return the row that `--json` prints."""
        last, before = self.step.last, self.step.before
        return {
            "id": last.note_id,
            "title": last.title,
            "path": last.path,
            "at": format_time(last.at),
            "changes": [{"version": each.version, "op": each.op} for each in self.step.changes],
            "back_to": before.version if before is not None and before.op != DELETED else None,
            "result": self.result,
            "version": self.version,
            "reason": self.reason or None,
        }


async def plan_undo(
    tools: ToolCalls, agents: Sequence[str], since: datetime | None, until: datetime
) -> list[UndoStep]:
    """Return all steps that undo the changes of agents in a time span, newest first.

    The time span is from `since` to before `until`. Without `since`, the undo covers all changes in the
    history. Changes of several agents are undone in one sequence. Overlapping changes of these agents then
    need no merge.

    Raises `UndoFailed`.
    """
    found = [row for agent in agents for row in await changes_of(tools, agent, since)]
    if len(agents) > 1:
        found.sort(key=lambda row: (row.at, row.version), reverse=True)
    return await plan_changes(tools, [row for row in found if row.at < until])


async def changes_of(
    tools: ToolCalls,
    agent: str,
    since: datetime | None = None,
    note_id: str | None = None,
    most: int = MOST_CHANGES,
) -> list[VersionRow]:
    """Return the newest changes of an agent, newest first. Changes made meanwhile cause no duplicates.

    Changes made by an undo do not count as changes of the agent `undo`. In earlier Lithos versions any agent
    could use this name. Raises `UndoFailed`.
    """
    asked = {"changed_by": agent, "since": since and format_time(since), "id": note_id}
    given = {name: value for name, value in asked.items() if value is not None}
    found = await _list(tools, given, lambda row: False, most)
    return [row for row in found if not (row.is_undo and agent == UNDO_AGENT)]


async def plan_changes(tools: ToolCalls, changes: Sequence[VersionRow]) -> list[UndoStep]:
    """Return the steps that undo these changes, newest first.

    `changes` must be newest first. Raises `UndoFailed`.
    """
    # The oldest change of each note. The notes are in the order of their newest changes.
    oldest = {row.note_id: row for row in changes}
    wanted = set(changes)
    steps: list[UndoStep] = []
    for note_id, first in oldest.items():
        steps += plan_steps(await _versions_down_to(tools, note_id, first), wanted.__contains__)
    return interleave(steps, {row: place for place, row in enumerate(changes)})


async def _versions_down_to(tools: ToolCalls, note_id: str, first: VersionRow | None) -> list[VersionRow]:
    """Return the versions of a note, newest first, down to the version before `first`."""
    return await _list(tools, {"id": note_id}, lambda row: first is not None and row.version < first.version)


async def _list(
    tools: ToolCalls,
    asked: Mapping[str, Any],
    is_last: Callable[[VersionRow], bool],
    most: int = MOST_CHANGES,
) -> list[VersionRow]:
    """Read rows of `lithos_history` page by page until `is_last` accepts a row. Duplicates are left out."""
    found: dict[tuple[Any, ...], VersionRow] = {}
    offset = 0
    while len(found) < most:
        limit = min(PAGE, most - len(found))
        answer = await _call(tools, "lithos_history", {**asked, "limit": limit, "offset": offset})
        for row in answer["versions"]:
            read = read_version({**asked, **row})
            found[read.note_id, read.version, read.op, read.at, read.path] = read
        offset += len(answer["versions"])
        if not answer["versions"] or offset >= answer["total"] or is_last(read):
            break
    return list(found.values())


async def _call(tools: ToolCalls, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call a tool and return its answer. Raises `UndoFailed` if the tool refuses."""
    answer = await tools.call(tool, arguments) or {}
    if answer.get("status") == "error":
        raise UndoFailed(str(answer["message"]))
    return answer


def read_version(row: Mapping[str, Any]) -> VersionRow:
    """Parse a row of `lithos_history`."""
    return VersionRow(
        note_id=row["id"],
        version=row["version"],
        at=parse_time(row["at"]),
        agent=row["agent"],
        op=row["op"],
        path=row["path"],
        title=row["title"],
        digest=row["hash"],
        size=row["size"],
        changed=tuple(row["changed"]),
        is_undo=row.get("undo") is True,
        approved_by=row.get("approved_by"),
    )


class _Changed(Exception):
    """The exception raised if the note got another version during the step."""


@define(eq=False)  # bounded: ends with its call
class UndoRun:
    """Executes steps one after another. A dry run only reports what the undo would do.

    `by` is the agent that performs the undo. Its earlier restores and moves count as undo, and so does every
    version that undoes a change. Versions of this run do not count, because a note may be reverted in several
    steps.
    """

    tools: ToolCalls
    dry_run: bool = False
    by: str = UNDO_AGENT
    #: The last step for each note that a real run would have deleted, moved or changed by now.
    _tried: dict[str, UndoStep] = field(factory=dict)
    #: Changes that this run has already processed.
    _settled: set[VersionRow] = field(factory=set)
    #: The newest version of each note when this run first reached the note.
    _began: dict[str, VersionRow] = field(factory=dict)

    async def carry_out(self, step: UndoStep) -> list[UndoResult]:
        """Execute a step. If the step as a whole fails, undo its changes one by one."""
        result = await self._do(step)
        if result.result != LEFT or len(step.changes) == 1:
            return [result]
        return [await self._do(each) for each in split_step(step)]

    async def _do(self, step: UndoStep) -> UndoResult:
        """Execute a step. Repeat the step if the note changes meanwhile."""
        wanted, newer = step, self._tried.get(step.last.note_id)
        if newer is not None and newer.before == step.last:
            # The dry run did not undo the newer part. Both parts therefore form one step from the current
            # state.
            step = UndoStep(changes=newer.changes + step.changes, before=step.before)
        for _ in range(RETRIES):
            try:
                result = await self._try(step)
            except _Changed:
                continue
            if result.result != LEFT:
                self._settled.update(step.changes)
                if self.dry_run:
                    self._tried[step.last.note_id] = step
            return attrs.evolve(result, step=wanted)
        return UndoResult(step, LEFT, reason="the note keeps changing, so run undo again")

    async def _try(self, step: UndoStep) -> UndoResult:
        if step.is_nothing:
            return UndoResult(step, UNDONE, reason="created and deleted by the agent")
        if step.is_pruned:
            return UndoResult(step, LEFT, reason="the previous version is no longer kept")
        rows = await _versions_down_to(self.tools, step.last.note_id, step.last)
        place = next((n for n, row in enumerate(rows) if row == step.last), None)
        if place is None:
            return UndoResult(step, LEFT, reason="the version is no longer kept")
        newest = rows[0]
        first = self._began.setdefault(step.last.note_id, newest)
        since = next((n for n, row in enumerate(rows) if row == first), 0)
        mine = {row for row in rows[:since] if row.is_undo and row.agent == self.by}
        newer = [row for row in rows[:place] if row not in self._settled and row not in mine]
        is_deleted = newest.op == DELETED
        if step.kind == "return":
            return await self._return(step, newer, newest, is_deleted=is_deleted)
        if is_deleted:
            is_own = newest.agent == self.by != UNDO_AGENT
            if step.kind == "delete" or newest.is_undo or is_own:
                return UndoResult(step, UNDONE, reason="the note no longer exists")
            return UndoResult(step, LEFT, reason=f"{newest.agent} has deleted the note since")
        if step.kind == "delete":
            return await self._delete(step, newer, newest)
        return await self._revert(step, newer)

    async def _return(
        self, step: UndoStep, newer: Sequence[VersionRow], newest: VersionRow, *, is_deleted: bool
    ) -> UndoResult:
        assert step.before is not None
        if not is_deleted or is_undone(newer, step, self.by):
            return UndoResult(
                step, UNDONE, reason="the note exists again" if not is_deleted else "undone before"
            )
        if newer:
            return UndoResult(step, LEFT, reason=f"{newest.agent} has deleted the note since")
        answer = await self._call(
            "lithos_restore",
            id=step.last.note_id,
            version=step.before.version,
            agent=self.by,
            expected_version=newest.version,
            dry_run=self.dry_run,
            undo=newest.version,
            back_to=step.before.path,
        )
        if answer.get("code") == "path_collision" and answer.get("existing_id") in self._tried:
            return UndoResult(step, RETURNED)
        if "code" in answer or answer["status"] == _PROPOSED:
            return self._left(step, answer)
        return UndoResult(step, RETURNED, answer["version"])

    async def _delete(self, step: UndoStep, newer: Sequence[VersionRow], newest: VersionRow) -> UndoResult:
        # Changes that other agents made and reverted do not count, because the file has the agent's bytes.
        other = None if newest.digest == step.last.digest else since_by_others(newer, self.by)
        if other is not None:
            return UndoResult(
                step, LEFT, reason=f"{other.agent} has changed the new note since (version {other.version})"
            )
        if is_undone(newer, step, self.by):
            return UndoResult(step, UNDONE, reason="undone before")
        if self.dry_run:
            return UndoResult(step, REMOVED)
        answer = await self._call(
            "lithos_delete",
            id=step.last.note_id,
            agent=self.by,
            expected_version=newest.version,
            undo=True,
        )
        if "code" in answer or answer.get("status") == _PROPOSED:
            return self._left(step, answer)
        return UndoResult(step, REMOVED)

    async def _revert(self, step: UndoStep, newer: Sequence[VersionRow]) -> UndoResult:
        assert step.before is not None
        done = UndoResult(step, UNDONE, reason="the note already has its earlier text")
        if step.writes:
            answer = await self._call(
                "lithos_restore",
                id=step.last.note_id,
                version=step.before.version,
                base=step.last.version,
                agent=self.by,
                dry_run=self.dry_run,
                undo=self._began[step.last.note_id].version,
            )
            if "code" in answer or answer["status"] == _PROPOSED:
                return self._left(step, answer)
            if answer["status"] != "unchanged":
                result = MERGED if "merged_with" in answer else REVERTED
                done = UndoResult(step, result, answer["version"])
        if not step.moves or is_undone(newer, step, self.by):
            return done
        known = await _call(
            self.tools, "lithos_read", {"id": step.last.note_id, "max_length": 1, "agent": CLI_AGENT}
        )
        if known["path"] not in (step.before.path, step.last.path):
            return UndoResult(step, LEFT, reason=f"the note has been moved to {known['path']}")
        moved = await self._move_back(step, str(known["path"]))
        if moved is not None:
            return moved
        if done.result == UNDONE and known["path"] != step.before.path:
            return UndoResult(step, REVERTED, known["version"])
        return done

    async def _move_back(self, step: UndoStep, path: str) -> UndoResult | None:
        """Move the note back to its former path. Return None if the note is already there."""
        assert step.before is not None
        if self.dry_run or path == step.before.path:
            return None
        answer = await self._call(
            "lithos_note_move", id=step.last.note_id, path=step.before.path, agent=self.by, undo=True
        )
        is_left = "code" in answer or answer.get("status") == _PROPOSED
        return self._left(step, answer) if is_left else None

    async def _call(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """Return the answer, even if it is a refusal.

        Raises `_Changed` if another client changed the note first.
        """
        answer = await self.tools.call(tool, arguments) or {}
        if answer.get("code") == "version_conflict" and "conflicts" not in answer:
            raise _Changed
        return answer

    def _left(self, step: UndoStep, answer: Mapping[str, Any]) -> UndoResult:
        if answer.get("status") == _PROPOSED:
            return UndoResult(
                step, LEFT, reason=f"the change waits for approval by a person, as {answer['proposal_id']}"
            )
        if "conflicts" in answer:
            return UndoResult(
                step, LEFT, reason=f"others changed the same places: {_name_conflicts(answer['conflicts'])}"
            )
        return UndoResult(step, LEFT, reason=str(answer["message"]))


def _name_conflicts(conflicts: Sequence[Mapping[str, Any]]) -> str:
    named = [f"line {each['line']}" if "line" in each else str(each["key"]) for each in conflicts]
    return ", ".join(named[:5]) + (", …" if len(named) > 5 else "")
