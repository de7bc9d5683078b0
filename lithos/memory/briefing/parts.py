"""The text parts around the excerpts: task, warnings, recent activity and omitted notes.

Each part is cut to its share of the budget and reports what was cut. The Markdown can be pasted unchanged,
because note text can never look like the frame around it: headings in an excerpt become bold lines, and code
fences that were cut are opened or closed again. Texts from other agents are limited to one line of limited
length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final

from attrs import frozen

from lithos.kernel.values.graphemes import beginning, tail
from lithos.kernel.values.times import format_time
from lithos.notes.model.earlier_turns import EarlierTurn
from lithos.notes.model.note import NoteWarning
from lithos.tasks.model.graph import Blocker
from lithos.tasks.model.task import Claim, Finding, Task
from lithos.text.hidden_text import without_hidden
from lithos.text.markdown import code_fences
from lithos.text.outline.outline import TOP
from lithos.text.words.tokens import Count, cut_tidily

#: Maximum characters of a title, path or section in a line of the frame.
TITLE_SHOWN: Final = 120
PATH_SHOWN: Final = 240
SECTION_SHOWN: Final = 120
PROJECT_SHOWN: Final = 100
#: Mark that stands for omitted passages of a section.
GAP: Final = "\n\n[…]\n\n"

_HEADING: Final = re.compile(r"^([ \t>]{0,16})(#{1,6})(?:[ \t]+([^\n]*?))?[ \t]*$", re.MULTILINE)
_UNDERLINE: Final = re.compile(r"(?<=[^\n])\n {0,3}(?:=+|-+)[ \t]*(?=\n|\Z)")
_CLOSING: Final = re.compile(r"[ \t]+#+$")
_TICKS: Final = re.compile(r"`{3,}|~{3,}")
_INFO: Final = re.compile(r"[\w+-]{0,20}")
#: Characters that would end a line of the frame, or a `code` span.
_BREAKS: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def one_line(text: str, most: int) -> str:
    """Return a text as one line without invisible characters. If it is long, its middle is left out."""
    text = _BREAKS.sub(" ", text[: 4 * most] if len(text) > 4 * most else text).strip()
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{beginning(text, half).rstrip()}…{tail(text, half).lstrip()}"


def header(title: str, path: str, version: int, section: str, project: str = "") -> str:
    """Return the heading line of an excerpt. A long section path is shortened to its innermost names.

    `project` is the project of a note that is not of the agent's project.
    """
    owned = f", of project {one_line(project, PROJECT_SHOWN)}" if project else ""
    if not version:  # An attachment does not have a version.
        return f"### {one_line(title, TITLE_SHOWN)} ({one_line(path, PATH_SHOWN)}{owned})"
    names = section.split(" > ")
    while len(names) > 1 and len(" > ".join(names)) > SECTION_SHOWN:
        names = names[1:]
    return (
        f"### {one_line(title, TITLE_SHOWN)} ({one_line(path, PATH_SHOWN)}, v{version}, "
        f"{one_line(' > '.join(names), SECTION_SHOWN)}{owned})"
    )


def short_header(title: str, section: str, date: str, project: str = "") -> str:
    """Return the heading text after the source number.

    The heading has the title, the section, the note's own date, and the project if it is not the agent's.
    """
    names = section.split(" > ") if section else []
    while len(names) > 1 and len(" > ".join(names)) > SECTION_SHOWN:
        names = names[1:]
    shown = one_line(title, TITLE_SHOWN)
    place = one_line(" > ".join(names), SECTION_SHOWN)
    place = f" > {place}" if place and place not in (TOP, shown) else ""
    dated = f" ({date})" if date and date not in shown else ""
    owned = f" (of project {one_line(project, PROJECT_SHOWN)})" if project else ""
    return f"{shown}{place}{dated}{owned}"


def render_spans(content: str, spans: Sequence[tuple[int, int]], fences: Sequence[tuple[int, int]]) -> str:
    """Return parts of a note in text order. `fences` are the positions of its fenced code (`code_fences`)."""
    return GAP.join(demote(without_hidden(_mended(content, start, end, fences))) for start, end in spans)


def _mended(content: str, start: int, end: int, fences: Sequence[tuple[int, int]]) -> str:
    """Return `content[start:end]`. Code fences that were cut are opened and closed again."""
    text = content[start:end]
    for number in range(bisect_right(fences, start, key=itemgetter(1)), len(fences)):
        begin, stop = fences[number]
        if begin >= end:
            break
        mark = _TICKS.search(content, begin, min(stop, begin + 200))
        if mark is None:
            continue
        if begin < start < stop:
            info = _INFO.match(content, mark.end())
            text = f"{mark[0][:20]}{info[0] if info else ''}\n{text}"
        is_closed = content[start:end].rstrip().endswith(mark[0][:3]) and stop <= end
        if not is_closed and (stop > end or stop == len(content)):
            text = f"{text}\n{mark[0][:20]}"
    return text


def demote(text: str) -> str:
    """Return the text with headings converted to bold lines. Fenced code is not changed."""
    if "#" not in text and "\n-" not in text and "\n=" not in text and "\n " not in text:
        return text
    return "".join(_demoted(text))


def _demoted(text: str) -> Iterator[str]:
    done = 0
    for start, end in code_fences(text):
        yield _flatten(text[done:start])
        yield text[start:end]
        done = end
    yield _flatten(text[done:])


def _flatten(text: str) -> str:
    return _HEADING.sub(_bold, _UNDERLINE.sub("", text))


def _bold(found: re.Match[str]) -> str:
    words = _CLOSING.sub("", found[3] or "").strip().strip("#").strip()
    return f"{found[1]}**{words}**" if words else found[1].rstrip()


#: Maximum share of the task part for the description. It applies if there are also claims or findings.
_DESCRIPTION: Final = 0.5
#: Maximum characters to read of a finding, a reason or an activity.
_LINE: Final = 2_000
#: Maximum number of claims to show, and maximum number of blockers to show.
_CLAIMS: Final = 8


@frozen(kw_only=True)
class TaskPart:
    """A task with its claims and findings, oldest finding first.

    With `is_news`, only new findings are shown.
    """

    task: Task
    claims: Sequence[Claim] = ()
    findings: Sequence[Finding] = ()
    blockers: Sequence[Blocker] = ()
    is_news: bool = False


@frozen
class AboutNote:
    """A warning about a note. With `is_left_out`, the briefing only names the note."""

    note_id: str
    note_title: str
    warning: NoteWarning
    is_left_out: bool


@frozen(kw_only=True)
class LeftOut:
    """A candidate that was left out of the text, with the token count of its whole content and the reason."""

    id: str
    title: str
    tokens: int
    reason: str
    #: If True, the note did not fit. If False, it was not relevant enough or is not trusted.
    has_no_room: bool = False


def take_lines(lines: Iterable[str], most: int, count: Count) -> list[str]:
    """Return as many of the first lines as fit in `most` tokens."""
    taken: list[str] = []
    for line in lines:
        cost = count(line) + 1
        if cost > most:
            break
        taken.append(line)
        most -= cost
    return taken


def task_text(part: TaskPart, most: int, count: Count) -> str:
    """Return the text of a task.

    The task text has at most `most` tokens: state, claims, blockers, description, newest findings.
    """
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
    """Return the findings, newest first.

    The last line of the findings has the number of older findings that were left out.
    """
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
    """Return one line per warning. Warnings about shown notes come first."""
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
    """Return the recent activity, newest first."""
    return _list_of("## Recent changes", [f"- {one_line(line, 400)}" for line in lines], most, count, "more")


def decisions_text(lines: Sequence[str], most: int, count: Count) -> str:
    """Return the decisions of people about the proposals of the agent, newest first."""
    return _list_of("## Your proposals", [f"- {one_line(line, 500)}" for line in lines], most, count, "more")


#: Maximum number of characters of the title of a past session, and of the text of its turn.
_SESSION_TITLE: Final = 60
_TURN: Final = 700


def sessions_text(turns: Sequence[EarlierTurn], most: int, count: Count) -> str:
    """Return the turns of past sessions, best first. Each line has the id with which the turn is read."""
    return _list_of("## Earlier sessions", list(map(_turn_line, turns)), most, count, "more")


def _turn_line(turn: EarlierTurn) -> str:
    facts = [
        "" if turn.when is None else format_time(turn.when)[:10],
        one_line(turn.client, PROJECT_SHOWN),
        one_line(turn.project, PROJECT_SHOWN),
        one_line(turn.title, _SESSION_TITLE),
    ]
    return f"- {', '.join(filter(None, facts))} (`id={turn.address}`): {one_line(turn.text, _TURN)}"


def left_out_text(left: Sequence[LeftOut], most: int, count: Count) -> str:
    """Return the list of notes that did not fit, with a hint how to read these notes."""
    lines = [f"- {one_line(each.title, TITLE_SHOWN)} (`id={each.id}`, {each.tokens} tokens)" for each in left]
    text = _list_of(
        "## Left out: read with lithos_read", lines, most, count, "more: lithos_search finds them"
    )
    if text or not left:
        return text
    short = f"Left out: {len(left)} notes; lithos_search finds them."
    return short if count(short) <= most else ""


def _list_of(head: str, lines: Sequence[str], most: int, count: Count, more: str) -> str:
    """Return a heading, and as many lines as fit.

    The last line of the list has the number of omitted lines. If no line fits, return "".
    """
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
