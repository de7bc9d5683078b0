"""Rows of sessions in the answers of tools, and the text of a session's turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from lithos.kernel.values.times import format_optional
from lithos.notes.service.row_kinds import SESSION
from lithos.server.tools.fitting import cut_warning
from lithos.sessions.answers.addresses import TurnAddress
from lithos.sessions.model.results import SPAN, SessionHit, SessionPart
from lithos.sessions.model.session import Session, Turn
from lithos.text.snippet import cut

#: Maximum number of files and of tools that the text of one turn names.
NAMED: Final = 12


def session_row(session: Session) -> dict[str, Any]:
    """Return the facts of a session."""
    row: dict[str, Any] = {
        "kind": SESSION,
        "id": session.id,
        "title": session.title,
        "client": session.client,
        "agent": session.agent,
        "project": session.project,
        "begin": format_optional(session.begun),
        "end": format_optional(session.ended),
        "turns": session.turns,
    }
    if session.gone_at is not None:
        row["transcript_gone_at"] = format_optional(session.gone_at)
    return row | ({"notices": list(session.notices)} if session.notices else {})


def hit_row(hit: SessionHit) -> dict[str, Any]:
    """Return the row of a turn that a search found. `id` and `turn` are what `lithos_read` takes."""
    return {
        "kind": SESSION,
        "id": hit.id,
        "turn": hit.number,
        "title": hit.session.title,
        "snippet": hit.snippet,
        "score": hit.score,
        "match": hit.strength,
        "client": hit.session.client,
        "project": hit.session.project,
        "who": hit.turn.who,
        "when": format_optional(hit.turn.when),
    }


def part_row(part: SessionPart, turn: int | None, offset: int, max_length: int | None) -> dict[str, Any]:
    """Return the answer to a read: the facts of the session, and the text of consecutive turns.

    `next_turn` is the turn whose excerpt begins after this one.
    """
    row = session_row(part.session)
    if turn is not None:
        row["turn"] = turn
    text = "\n\n".join(map(turn_text, part.turns))[max(0, offset) :]
    is_cut = bool(max_length) and len(text) > (max_length or 0)
    content, end = cut(text, max_length or 0) if is_cut else (text, 0)
    row |= {"content": content, "truncated": is_cut}
    if part.turns:
        first, last = part.turns[0].number, part.turns[-1].number
        row |= {"shown": [first, last]}
        if last < part.total:
            row["next_turn"] = min(part.total, last + 1 + SPAN)
    if is_cut:
        row |= {"next_offset": max(0, offset) + end, "warnings": [cut_warning(max(0, offset) + len(text))]}
    return row


def turn_row(turn: Turn) -> dict[str, Any]:
    """Return a turn for commands."""
    return {
        "turn": turn.number,
        "who": turn.who,
        "when": format_optional(turn.when),
        "text": turn.text,
        "tools": list(turn.tools),
        "files": list(turn.files),
        "outputs": list(turn.outputs),
        "not_stored": turn.cut,
    }


def turn_text(turn: Turn) -> str:
    """Return a turn as text: the speaker, the time, the words, the tools and the files."""
    return "\n".join(_lines(turn))


def _lines(turn: Turn) -> Iterator[str]:
    when = format_optional(turn.when)
    yield f"[turn {turn.number}] {turn.who}" + (f", {when[:16]}" if when else "")
    if turn.text:
        yield turn.text
    if turn.cut:
        yield f"[{turn.cut:,} more characters were not stored]"
    if turn.tools:
        yield f"Tools: {_named(turn.tools)}"
    if turn.files:
        yield f"Files: {_named(turn.files)}"
    for output in turn.outputs:
        yield f"Output: {' '.join(output.split())}"


def _named(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def address_of(hit: SessionHit) -> str:
    """Return the address of a hit's turn."""
    return str(TurnAddress(hit.id, turn=hit.number))
