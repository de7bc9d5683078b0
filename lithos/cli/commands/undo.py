"""`lithos undo`: takes the changes of one agent back, note by note, while everybody goes on working.

The plan is made of version rows (`core.history.undo`). Every step looks at the note again and says which
version it has seen, so that a change that comes in between is never overwritten: the step is done again then.
What is undone already is known from the versions of the agent `undo` and from what the notes say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from attrs import define, field, frozen

from lithos.cli.commands.asking import Asker, ask_tool
from lithos.cli.commands.history import PAGE, ask_pages
from lithos.cli.output import print_json, print_line
from lithos.cli.session import CommandFailed, Session
from lithos.core.history.undo import UNDO_AGENT, Step, is_undone, plan_steps, since_by_others, split_step
from lithos.core.history.versions import DELETED, VersionRow
from lithos.core.times import format_time, parse_time

#: Changes that one run takes back.
MOST_CHANGES: Final = 100_000
#: How often a step is done again because its note was changed meanwhile.
RETRIES: Final = 5

REVERTED: Final = "reverted"
MERGED: Final = "merged"
REMOVED: Final = "deleted"
RETURNED: Final = "restored"
UNDONE: Final = "nothing to do"
LEFT: Final = "not reverted"


@frozen
class Result:
    """What became of a step: the version that the note has by it, or the reason why it was left."""

    step: Step
    result: str
    version: int | None = None
    reason: str = ""

    def to_row(self) -> dict[str, Any]:
        """As `--json` prints it."""
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


async def undo(session: Session, asker: Asker) -> int:
    """Take changes back and print what was done; 1 when something could not be. Raises `CommandFailed`."""
    typed = session.invocation.typed
    agent, since = str(typed["agent"]).strip(), typed["since"]
    until, dry_run = typed.get("until") or datetime.now(UTC), typed.get("dry_run", False)
    if agent == UNDO_AGENT:
        raise CommandFailed(
            "What an undo did is not undone by another. Bring single notes back: see `lithos history ID`, "
            "then `lithos restore-note ID --version N`.",
            2,
        )
    steps = await _plan(asker, agent, since, until)
    run = _Run(asker, dry_run)
    results = []
    for step in steps:
        for result in await run.carry_out(step):
            results.append(result)
            if not session.invocation.as_json:
                _print_result(result, dry_run)
    left = sum(each.result == LEFT for each in results)
    counts = {
        name: sum(each.result == name for each in results)
        for name in (REVERTED, MERGED, REMOVED, RETURNED, UNDONE, LEFT)
    }
    if session.invocation.as_json:
        window = {"agent": agent, "since": format_time(since), "until": format_time(until)}
        rows = [each.to_row() for each in results]
        counted = {name.replace(" ", "_"): number for name, number in counts.items()}
        print_json({**window, "dry_run": dry_run, "notes": rows, "counts": counted})
    else:
        _print_summary(agent, steps, counts, dry_run)
    return 1 if left else 0


async def _plan(asker: Asker, agent: str, since: datetime, until: datetime) -> list[Step]:
    """All steps, newest first."""
    asked = {"agent": agent, "since": format_time(since)}
    found = [read_version(row) for row in await ask_pages(asker, asked, MOST_CHANGES)]
    oldest: dict[str, VersionRow] = {}  # the oldest change of each note, notes in the order of their newest
    for row in found:
        if row.at < until:
            oldest[row.note_id] = row

    def is_wanted(row: VersionRow) -> bool:
        return row.agent == agent and since <= row.at < until

    steps: list[Step] = []
    for note_id, first in oldest.items():
        steps += plan_steps(await _versions_down_to(asker, note_id, first), is_wanted)
    return sorted(steps, key=lambda step: step.last.at, reverse=True)


async def _versions_down_to(asker: Asker, note_id: str, first: VersionRow | None) -> list[VersionRow]:
    """The versions of a note, newest first, down to the one before `first`."""
    rows: dict[tuple[Any, ...], VersionRow] = {}
    offset = 0
    while True:
        asked = {"id": note_id, "limit": PAGE, "offset": offset}
        answer = await ask_tool(asker, "lithos_history", asked)
        for row in answer["versions"]:
            read = read_version({"id": note_id, **row})
            rows[read.version, read.op, read.at, read.path] = read
        offset += len(answer["versions"])
        known = list(rows.values())
        if not answer["versions"] or offset >= answer["total"]:
            return known
        if first is not None and known[-1].version < first.version:
            return known


def read_version(row: Mapping[str, Any]) -> VersionRow:
    """A row of `lithos_history`."""
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
    )


class _Changed(Exception):
    """The note got another version while the step was under way."""


@define(eq=False)
class _Run:
    """Carries steps out one after another."""

    asker: Asker
    dry_run: bool
    #: Ids of notes that a dry run would delete by now.
    gone: set[str] = field(factory=set)

    async def carry_out(self, step: Step) -> list[Result]:
        """Do one step; change by change where it cannot be done at once."""
        result = await self._do(step)
        if result.result != LEFT or len(step.changes) == 1:
            return [result]
        return [await self._do(each) for each in split_step(step)]

    async def _do(self, step: Step) -> Result:
        """Do one step, again when its note is changed meanwhile."""
        for _ in range(RETRIES):
            try:
                return await self._try(step)
            except _Changed:
                continue
        return Result(step, LEFT, reason="it is changed all the time; run undo again")

    async def _try(self, step: Step) -> Result:
        if step.is_nothing:
            return Result(step, UNDONE, reason="created and deleted by the agent")
        if step.is_pruned:
            return Result(step, LEFT, reason="the version before is not kept any more")
        rows = await _versions_down_to(self.asker, step.last.note_id, step.last)
        place = next((n for n, row in enumerate(rows) if row == step.last), None)
        if place is None:
            return Result(step, LEFT, reason="the version is not kept any more")
        newer, newest = rows[:place], rows[0]
        is_deleted = newest.op == DELETED
        if step.kind == "return":
            return await self._return(step, newer, newest, is_deleted=is_deleted)
        if is_deleted:
            by = newest.agent
            if step.kind == "delete" or by == UNDO_AGENT:
                return Result(step, UNDONE, reason="the note is gone")
            return Result(step, LEFT, reason=f"{by} has deleted the note since")
        if step.kind == "delete":
            return await self._delete(step, newer, newest)
        return await self._revert(step, newer)

    async def _return(
        self, step: Step, newer: Sequence[VersionRow], newest: VersionRow, *, is_deleted: bool
    ) -> Result:
        assert step.before is not None
        if not is_deleted or is_undone(newer, step):
            return Result(
                step, UNDONE, reason="the note is there again" if not is_deleted else "undone before"
            )
        if newer:
            return Result(step, LEFT, reason=f"{newest.agent} has deleted the note since")
        answer = await self._ask(
            "lithos_restore",
            id=step.last.note_id,
            version=step.before.version,
            agent=UNDO_AGENT,
            expected_version=newest.version,
            dry_run=self.dry_run,
        )
        if answer.get("code") == "path_collision" and answer.get("existing_id") in self.gone:
            return Result(step, RETURNED)
        if "code" in answer:
            return self._left(step, answer)
        moved = await self._move_back(step, str(answer["path"]))
        return moved or Result(step, RETURNED, answer["version"])

    async def _delete(self, step: Step, newer: Sequence[VersionRow], newest: VersionRow) -> Result:
        other = since_by_others(newer)
        if other is not None:
            return Result(
                step, LEFT, reason=f"{other.agent} has changed the new note since (version {other.version})"
            )
        if self.dry_run:
            self.gone.add(step.last.note_id)
            return Result(step, REMOVED)
        answer = await self._ask(
            "lithos_delete", id=step.last.note_id, agent=UNDO_AGENT, expected_version=newest.version
        )
        if "code" in answer:
            return self._left(step, answer)
        return Result(step, REMOVED)

    async def _revert(self, step: Step, newer: Sequence[VersionRow]) -> Result:
        assert step.before is not None
        done = Result(step, UNDONE, reason="the note says what it said before")
        if step.writes:
            answer = await self._ask(
                "lithos_restore",
                id=step.last.note_id,
                version=step.before.version,
                base=step.last.version,
                agent=UNDO_AGENT,
                dry_run=self.dry_run,
            )
            if "code" in answer:
                return self._left(step, answer)
            if answer["status"] != "unchanged":
                result = MERGED if "merged_with" in answer else REVERTED
                done = Result(step, result, answer["version"])
        if not step.moves or is_undone(newer, step):
            return done
        known = await ask_tool(
            self.asker, "lithos_read", {"id": step.last.note_id, "max_length": 1, "agent": "cli"}
        )
        if known["path"] not in (step.before.path, step.last.path):
            return Result(step, LEFT, reason=f"the note was moved to {known['path']} since")
        moved = await self._move_back(step, str(known["path"]))
        if moved is not None:
            return moved
        if done.result == UNDONE and known["path"] != step.before.path:
            return Result(step, REVERTED, known["version"])
        return done

    async def _move_back(self, step: Step, path: str) -> Result | None:
        """Move the note to where it was; None when it is there."""
        assert step.before is not None
        if self.dry_run or path == step.before.path:
            return None
        answer = await self._ask(
            "lithos_note_move", id=step.last.note_id, path=step.before.path, agent=UNDO_AGENT
        )
        return self._left(step, answer) if "code" in answer else None

    async def _ask(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """The answer, also a refusal. Raises `_Changed` when somebody was faster."""
        answer = await self.asker.call(tool, arguments) or {}
        if answer.get("code") == "version_conflict" and "conflicts" not in answer:
            raise _Changed
        return answer

    def _left(self, step: Step, answer: Mapping[str, Any]) -> Result:
        if "conflicts" in answer:
            return Result(
                step, LEFT, reason=f"others changed the same: {_name_conflicts(answer['conflicts'])}"
            )
        return Result(step, LEFT, reason=str(answer["message"]))


def _name_conflicts(conflicts: Sequence[Mapping[str, Any]]) -> str:
    named = [f"line {each['line']}" if "line" in each else str(each["key"]) for each in conflicts]
    return ", ".join(named[:5]) + (", …" if len(named) > 5 else "")


def _print_result(result: Result, dry_run: bool) -> None:
    step = result.step
    versions = ", ".join(str(change.version) for change in reversed(step.changes))
    what = f"{'would be ' if dry_run and result.result not in (UNDONE, LEFT) else ''}{result.result}"
    told = f"version {result.version}" if result.version is not None and not dry_run else result.reason
    changed = f"version{'s' if len(step.changes) > 1 else ''} {versions}"
    print_line(f"{what}: {step.last.path} ({changed}, {step.last.op})" + (f" - {told}" if told else ""))


def _print_summary(agent: str, steps: Sequence[Step], counts: Mapping[str, int], dry_run: bool) -> None:
    changes = sum(len(step.changes) for step in steps)
    if not changes:
        print_line(f"{agent} has changed no note in that time.")
        return
    told = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    notes = len({step.last.note_id for step in steps})
    print_line(
        f"{changes} changes of {notes} notes by {agent}: {told}"
        + (" (dry run, nothing was changed)" if dry_run else "")
    )
