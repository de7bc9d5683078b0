"""The parts of a briefing at the start of a session: pinned notes, and the open tasks of the project.

Specified in docs/spec/context.md §1. Both parts are cut to their share of the budget like the parts of
`lithos.memory.briefing.parts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import evolve, frozen

from lithos.kernel.values.times import format_time
from lithos.memory.briefing.blocks import cut_blocks
from lithos.memory.briefing.parts import (
    PATH_SHOWN,
    PROJECT_SHOWN,
    TITLE_SHOWN,
    one_line,
    render_spans,
    take_lines,
)
from lithos.memory.briefing.passages import SourceNote, SplitNote
from lithos.tasks.model.open_tasks import OpenTask, OpenTasks
from lithos.tasks.model.task import Claim
from lithos.text.excerpt_bounds import expects_more
from lithos.text.markdown import code_fences
from lithos.text.words.tokens import Count, cut_tidily

#: Maximum number of pinned notes to read. The text says how many more there are.
MOST_PINNED: Final = 20
#: Maximum number of tokens of one pinned note, and minimum number for which its text is begun.
PINNED_NOTE: Final = 120
_LEAST_TEXT: Final = 12
#: Maximum number of blocks of a pinned note: a paragraph that ends on a colon needs the list after it.
_BLOCKS: Final = 3
#: Maximum number of claims to name per task.
_CLAIMS: Final = 3


@frozen
class PinnedNote:
    """A pinned note with its summary or first paragraph.

    `end` is the position at which the paragraph ends in the note. A summary has the end 0.
    """

    id: str
    title: str
    path: str
    text: str
    end: int = 0
    #: Project of a note that is not of the agent's project, or "".
    project: str = ""


@frozen
class PinnedNotes:
    """The first pinned notes by path, and the number of all pinned notes."""

    shown: Sequence[PinnedNote] = ()
    total: int = 0

    def __bool__(self) -> bool:
        return bool(self.shown)


def first_paragraph(split: SplitNote) -> tuple[str, int]:
    """Return the first paragraph of a note, and the position at which it ends.

    If it ends on a colon or a question, the next block is part of it.
    """
    cut = cut_blocks(evolve(split, passages=split.passages[:_BLOCKS]))
    spans: list[tuple[int, int]] = []
    for passage in cut.passages[:_BLOCKS]:
        if spans and not expects_more(cut.content[spans[-1][0] : spans[-1][1]]):
            break
        spans.append((passage.start, passage.end))
    if not spans:
        return "", 0
    start, end = spans[0][0], spans[-1][1]
    content = cut.content[:end]
    return render_spans(content, [(start, end)], list(code_fences(content))), end


def without_pinned(
    sources: Sequence[SourceNote], shown: Sequence[PinnedNote], *, has_query: bool
) -> Sequence[SourceNote]:
    """Return the sources without the text that pinned notes already show.

    Without a query, nothing says that the rest of a pinned note matters, so it is left out too.
    """
    if not has_query:
        ids = {each.id for each in shown}
        return [source for source in sources if source.id not in ids]
    ends = {each.id: each.end for each in shown if each.end}
    if not ends:
        return sources
    cut = (_after(source, ends.get(source.id, 0)) for source in sources)
    return [source for source in cut if source.split.passages]


def _after(source: SourceNote, end: int) -> SourceNote:
    if not end:
        return source
    left = [
        evolve(passage, start=max(passage.start, end))
        for passage in source.split.passages
        if passage.end > end
    ]
    return evolve(source, split=evolve(source.split, passages=left))


def pinned_text(pinned: PinnedNotes, most: int, count: Count) -> tuple[str, Sequence[PinnedNote]]:
    """Return the text of the first pinned notes in at most `most` tokens, and these notes.

    The last line has the number of omitted notes.
    """
    if not pinned:
        return "", ()
    head, more = "## Pinned", "and {} more: lithos_list with tags pinned"
    room = most - count(head) - count(more.format(pinned.total)) - 3
    blocks: list[str] = []
    for each in pinned.shown:
        owned = f", of project {one_line(each.project, PROJECT_SHOWN)}" if each.project else ""
        name = f"### {one_line(each.title, TITLE_SHOWN)} ({one_line(each.path, PATH_SHOWN)}{owned})"
        left = min(room - count(name) - 2, PINNED_NOTE)
        text = cut_tidily(each.text, left, count) if left >= _LEAST_TEXT else ""
        if not text:
            break
        blocks.append(f"{name}\n{text}")
        room -= count(name) + count(text) + 2
    if not blocks:
        return _only_total(f"## Pinned: {pinned.total}, see lithos_list with tags pinned", most, count), ()
    missing = pinned.total - len(blocks)
    text = "\n\n".join([head, *blocks, *([more.format(missing)] if missing else [])])
    return text, pinned.shown[: len(blocks)]


def work_text(work: OpenTasks, most: int, count: Count) -> str:
    """Return one line per open task in at most `most` tokens. The last line has the number of other tasks."""
    if not work:
        return ""
    head, more = "## Open tasks (`task_id`)", "- and {} more: lithos_task_list"
    room = most - count(head) - count(more.format(work.total)) - 2
    lines = take_lines((_task_line(each, work.agent_id) for each in work.shown), room, count)
    if not lines:
        return _only_total(f"## Open tasks: {work.total}, see lithos_task_list", most, count)
    missing = work.total - len(lines)
    return "\n".join([head, *lines, *([more.format(missing)] if missing else [])])


def _only_total(text: str, most: int, count: Count) -> str:
    """Return a line for a section of which nothing fits."""
    return text if count(text) <= most else ""


def _task_line(open_task: OpenTask, agent_id: str | None) -> str:
    task = open_task.task
    states = [*_claims(open_task.claims[:_CLAIMS], agent_id)]
    if open_task.blocker:
        states.append(f"blocked by {one_line(open_task.blocker, TITLE_SHOWN)}")
    title = one_line(task.title, TITLE_SHOWN)
    return f"- {title}: {'; '.join(states) or 'free'} (`{one_line(task.id, 80)}`)"


def _claims(claims: Sequence[Claim], agent_id: str | None) -> Iterator[str]:
    for claim in claims:
        holder = "you hold" if claim.agent == agent_id else f"{one_line(claim.agent, 80)} holds"
        yield f"{holder} {one_line(claim.aspect, 80)} until {format_time(claim.expires_at)[:16]}Z"
