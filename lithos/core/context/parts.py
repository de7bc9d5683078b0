"""What stands around the excerpts: the task, the warnings, what happened lately, what was left out.

Each is cut to its part of the budget, and says so. Texts of others stand on one line each, so that nothing in
them looks like the frame.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from attrs import frozen

from lithos.core.context.rendering import TITLE_SHOWN, demote, one_line
from lithos.core.context.tokens import Count, cut_tidily
from lithos.core.notes.model import NoteWarning
from lithos.core.tasks.graph import Blocker
from lithos.core.tasks.model import Claim, Finding, Task
from lithos.core.times import format_time

#: Share of a task's part that its description may take, when there is more to say of it.
_DESCRIPTION: Final = 0.5
#: Characters of a finding, of a reason, of an activity that are looked at.
_LINE: Final = 2_000
#: Claims and blockers that are shown.
_CLAIMS: Final = 8


@frozen(kw_only=True)
class TaskPart:
    """A task and what belongs to it; `findings` oldest first, `is_news`: only what is new is shown."""

    task: Task
    claims: Sequence[Claim] = ()
    findings: Sequence[Finding] = ()
    blockers: Sequence[Blocker] = ()
    is_news: bool = False


@frozen
class AboutNote:
    """A warning, and the note that it is about; `is_left_out`: the note is named instead of shown."""

    note_id: str
    note_title: str
    warning: NoteWarning
    is_left_out: bool


@frozen(kw_only=True)
class LeftOut:
    """A candidate that is not in the text: tokens of its whole content, and why."""

    id: str
    title: str
    tokens: int
    reason: str
    #: There was no room for it; else it was not worth showing, or must not be trusted.
    has_no_room: bool = False


def take_lines(lines: Iterable[str], most: int, count: Count) -> list[str]:
    """As many of the first lines as fit in `most` tokens together."""
    taken: list[str] = []
    for line in lines:
        cost = count(line) + 1
        if cost > most:
            break
        taken.append(line)
        most -= cost
    return taken


def task_text(part: TaskPart, most: int, count: Count) -> str:
    """The task within `most` tokens: state, claims and blockers, description, the newest findings."""
    task = part.task
    kind = "Task" if task.task_type == "task" else task.task_type.capitalize()
    head = f"## {kind}: {one_line(task.title, 2 * TITLE_SHOWN)}"
    status = f"Status: {task.status}; `task_id={one_line(task.id, 80)}`"
    outcome = f". Outcome: {one_line(task.outcome, 500)}" if task.outcome else ""
    room = most - count(head) - 1
    if room < 0:
        return cut_tidily(head, most, count)
    lines = [head, *take_lines([cut_tidily(status + outcome, max(0, room), count)], room, count)]
    room -= sum(count(line) + 1 for line in lines[1:])
    facts = take_lines(_facts(part), room // 3, count)
    room -= sum(count(line) + 1 for line in facts)
    description = ""
    if task.description and task.description.strip() and not part.is_news:
        share = _DESCRIPTION if part.findings else 1.0
        description = cut_tidily(demote(task.description.strip()), int(room * share) - 2, count)
        room -= count(description) + 2 if description else 0
    found = _finding_lines(part, room, count)
    return "\n".join([*lines, *(["", description, ""] if description else []), *facts, *found]).strip()


def _facts(part: TaskPart) -> list[str]:
    claims = [
        f"- Claimed: {one_line(claim.aspect, 200)}, by {one_line(claim.agent, 100)}, "
        f"until {format_time(claim.expires_at)[:16]}"
        for claim in part.claims[:_CLAIMS]
    ]
    blockers = [f"- Blocked: {one_line(each.message, 300)}" for each in part.blockers[:_CLAIMS]]
    more = len(part.claims) + len(part.blockers) - len(claims) - len(blockers)
    return [*blockers, *claims, *([f"- and {more} more claims and blockers"] if more else [])]


def _finding_lines(part: TaskPart, room: int, count: Count) -> list[str]:
    """The newest findings first; the last line says how many older ones there are."""
    if not part.findings:
        return []
    head = "New findings:" if part.is_news else "Findings, newest first:"
    more = f"- {len(part.findings)} older: lithos_finding_list"
    room -= count(head) + count(more) + 2
    shown: list[str] = []
    for finding in reversed(part.findings):
        note = f" (note `{one_line(finding.knowledge_id, 80)}`)" if finding.knowledge_id else ""
        line = f"- {one_line(finding.agent, 100)}: {one_line(finding.summary, _LINE)}{note}"
        if count(line) + 1 > room:
            line = cut_tidily(line, room - 1, count) if room > 12 else ""
        if not line:
            break
        shown.append(line)
        room -= count(line) + 1
    if not shown:
        return [f"- {len(part.findings)} findings: lithos_finding_list"] if room + count(head) > 0 else []
    left = len(part.findings) - len(shown)
    return [head, *shown, *([f"- {left} older: lithos_finding_list"] if left else [])]


def warnings_text(warnings: Sequence[AboutNote], most: int, count: Count) -> str:
    """A line for each warning, those about shown notes first."""
    if not warnings:
        return ""
    ordered = [*(w for w in warnings if not w.is_left_out), *(w for w in warnings if w.is_left_out)]
    lines = [_warning_line(each) for each in ordered]
    return _list_of("## Warnings", lines, most, count, "more: see `warnings`")


def _warning_line(about: AboutNote) -> str:
    warning, title = about.warning, one_line(about.note_title, TITLE_SHOWN)
    other = warning.id != about.note_id
    cause = f" [{one_line(warning.title, TITLE_SHOWN)}, `id={warning.id}`]" if other else ""
    left_out = f"; not shown, `id={about.note_id}`" if about.is_left_out else ""
    return f"- {title}: {warning.kind}: {one_line(warning.reason, 300)}{cause}{left_out}"


def activity_text(lines: Sequence[str], most: int, count: Count) -> str:
    """What happened lately, newest first."""
    return _list_of("## Recent changes", [f"- {one_line(line, 400)}" for line in lines], most, count, "more")


def left_out_text(left: Sequence[LeftOut], most: int, count: Count) -> str:
    """What had no room, and how to read it."""
    lines = [f"- {one_line(each.title, TITLE_SHOWN)} (`id={each.id}`, {each.tokens} tokens)" for each in left]
    text = _list_of(
        "## Left out: read with lithos_read", lines, most, count, "more: lithos_search finds them"
    )
    if text or not left:
        return text
    short = f"Left out: {len(left)} notes; lithos_search finds them."
    return short if count(short) <= most else ""


def _list_of(head: str, lines: Sequence[str], most: int, count: Count, more: str) -> str:
    """A heading and as many lines as fit; the last says how many do not. Empty when none does."""
    if not lines:
        return ""
    room = most - count(head) - 1
    taken = take_lines(lines, room, count)
    if len(taken) < len(lines):
        last = f"- {len(lines)} {more}"
        taken = take_lines(lines, room - count(last) - 1, count)
        if taken:
            taken.append(f"- {len(lines) - len(taken)} {more}")
    return "\n".join([head, *taken]) if taken else ""
