"""The complete answer of `lithos_context`, within its budget (docs/spec/context.md §1).

A client receives the answer as compact JSON. The tokens of the JSON are counted. If there are too many, the
text is composed again with a smaller budget until the whole answer fits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from lithos.memory.briefing.blocks import cut_blocks
from lithos.memory.briefing.briefing import Briefing, Style, compose
from lithos.memory.briefing.material import Material
from lithos.memory.briefing.parts import PATH_SHOWN, PROJECT_SHOWN, TITLE_SHOWN, AboutNote, one_line
from lithos.memory.briefing.passages import SourceNote, Weights
from lithos.text.words.tokens import Count, cut_tidily

#: Shares of the budget for explanations and warnings, in addition to the text.
EXPLAINED: Final = 0.3
WARNED: Final = 0.15
#: Maximum number of attempts to compose the text again with a smaller budget.
TRIES: Final = 4
#: Maximum number of characters of a reason.
REASON: Final = 120
_WEIGHTS: Final = Weights(skips_greetings=True)


def compose_whole(
    material: Material, budget: int, count: Count, rest: Mapping[str, Any], *, wants_all: bool, explains: bool
) -> tuple[Briefing, dict[str, Any]]:
    """Return the briefing, and an answer with at most `budget` tokens.

    `rest` contains the other keys of the answer.
    """
    sent = _Sent(count)
    cut = [evolve(source, split=cut_blocks(source.split)) for source in material.sources]
    material = evolve(material, sources=cut)
    most = int(budget * (1 - EXPLAINED)) if explains else budget
    warned = _warnings(material.warnings, int(budget * WARNED), sent)
    frame = {"text": "", "sources": [], "tokens": budget, **rest, **warned}
    style = Style(is_compact=True, per_source=_per_source(material.sources, sent.count), wants_all=wants_all)
    room = most - sent.size(frame)
    briefing, answer = Briefing(text="", tokens=0, items=(), dropped=(), warnings=()), frame
    for _ in range(TRIES):
        briefing = compose(material, max(room, 1), sent.text, _WEIGHTS, style)
        answer = frame | {"text": briefing.text, "sources": _sources(briefing)}
        over = sent.size(answer) - most
        if over <= 0:
            break
        room -= over + 2
    else:
        while (over := sent.size(answer) - most) > 0 and answer["text"]:
            shorter = cut_tidily(answer["text"], max(0, sent.text(answer["text"]) - over - 2), sent.text)
            answer = answer | {"text": shorter if len(shorter) < len(answer["text"]) else ""}
    if not answer["sources"]:
        answer = {key: value for key, value in answer.items() if key != "sources"}
    if explains:
        answer |= _explained(briefing, budget - sent.size(answer), sent)
    return briefing, answer | {"tokens": sent.size(answer)}


class _Sent:
    """A token counter for values that are sent as JSON."""

    def __init__(self, count: Count) -> None:
        self.count = count

    def text(self, text: str) -> int:
        """Return the token count of a text inside JSON quotes."""
        return self.count(json.dumps(text, ensure_ascii=False)[1:-1])

    def size(self, answer: object) -> int:
        """Return the token count of a whole JSON value."""
        return self.count(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


def source_line(number: int, note_id: str, path: str, *, is_note: bool = True) -> str:
    """Return a source in the form that the client gets: its number in the text, and its path.

    Tools accept the path of a note instead of its id, which costs twice as many tokens. The id is added for
    an attachment, and for a path that is too long to be shown completely.
    """
    shown = one_line(path, PATH_SHOWN)
    return f"[{number}] {shown}" if is_note and shown == path else f"[{number}] {note_id} {shown}"


def _sources(briefing: Briefing) -> list[str]:
    shown = dict.fromkeys((item.id, item.path, item.version > 0) for item in briefing.items)
    return [
        source_line(number, note_id, path, is_note=is_note)
        for number, (note_id, path, is_note) in enumerate(shown, 1)
    ]


def _per_source(sources: Sequence[SourceNote], count: Count) -> int:
    """Return the average token cost of a source outside of the text."""
    lines = [f'"{source_line(10, each.id, each.path, is_note=each.version > 0)}",' for each in sources[:20]]
    return -(-sum(map(count, lines)) // len(lines)) if lines else 0


def _warnings(about: Sequence[AboutNote], most: int, sent: _Sent) -> dict[str, Any]:
    rows: list[dict[str, str]] = []
    for each in about:
        row = {"kind": each.warning.kind, "note_id": each.note_id}
        if each.warning.id != each.note_id:
            row["id"] = each.warning.id
        row["reason"] = one_line(each.warning.reason, REASON)
        most -= sent.size(row) + 1
        if most < 0:
            break
        rows.append(row)
    return {"warnings": rows} if rows else {}


def _explained(briefing: Briefing, most: int, sent: _Sent) -> dict[str, Any]:
    """Return the reasons for the excerpts, followed by the omitted notes, in at most `most` tokens."""
    numbers: dict[str, int] = {}
    rows: dict[str, list[dict[str, Any]]] = {"items": [], "dropped": []}
    most -= sent.size(rows)
    every: list[tuple[str, dict[str, Any]]] = []
    for item in briefing.items:
        number = numbers.setdefault(item.id, len(numbers) + 1)
        section, reason = one_line(item.section, TITLE_SHOWN), one_line(item.reason, REASON)
        row = {"source": number, "section": section, "score": round(item.score, 3), "reason": reason}
        row |= {"project": one_line(item.project, PROJECT_SHOWN)} if item.project else {}
        every.append(("items", row))
    for each in briefing.dropped:
        title, reason = one_line(each.title, TITLE_SHOWN), one_line(each.reason, REASON)
        every.append(("dropped", {"id": each.id, "title": title, "reason": reason}))
    for key, row in every:
        most -= sent.size(row) + 1
        if most < 0:
            break
        rows[key].append(row)
    return {key: some for key, some in rows.items() if some}
