"""What the console shows of proposals: their outcome as a comparison, their groups, their texts to be changed.

A text that a person changes has its hidden signs written out, as ⟦U+202E⟧: a field would hide them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from lithos.core.text.signs import find_signs
from lithos.front.console.difference import MOST_CHARACTERS, Comparison, compare

KINDS: Final[Mapping[str, str]] = {
    "create": "new note", "update": "change", "delete": "deletion", "move": "move",
}  # fmt: skip
#: Characters of a difference for each of its lines.
LINE_ROOM: Final = 200
#: Bytes of a text that can be changed on the page.
LARGEST_EDITED: Final = 80_000
#: How a sign that nobody sees is written where a text is changed.
_WRITTEN: Final = re.compile(r"⟦U\+([0-9A-F]{4,6})⟧")
_OPENING: Final = "⟦U+"

Row = Mapping[str, Any]


@frozen(kw_only=True)
class Proposal:
    """A proposal as a page shows it; `look` is None where there was no time to look what it would do."""

    row: Row
    look: Row | None = None

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.row["id"])

    @property
    def kind(self) -> str:
        """What it would do, in a word or two."""
        return KINDS.get(self.row["kind"], str(self.row["kind"]))

    @property
    def seal(self) -> str:
        """Stands for what is shown of it; empty where nothing is."""
        return str((self.look or {}).get("seal") or "")

    @property
    def conflicts(self) -> Sequence[Row]:
        """What others changed as well."""
        return (self.look or {}).get("conflicts") or ()

    @property
    def can_be_approved(self) -> bool:
        """Whether it waits, was looked at, and conflicts with nothing."""
        return self.row["status"] == "pending" and bool(self.seal) and not self.conflicts

    @property
    def is_move(self) -> bool:
        """Whether it changes the place of a note and none of its text."""
        return bool(self.row["kind"] == "move")

    @property
    def is_cut(self) -> bool:
        """Whether its texts are too long to be compared here, so that only a beginning is told."""
        look = self.look or {}
        return bool({"current", "proposed"} & set(look.get("shortened", ())))

    @property
    def editable(self) -> str | None:
        """The proposed text as a person may change it, its hidden signs written out; None where it cannot be."""
        text = (self.look or {}).get("proposed")
        if not isinstance(text, str) or self.is_move or self.is_cut or _OPENING in text:
            return None
        written = write_signs(text)
        return written if len(written.encode()) <= LARGEST_EDITED else None

    def compare(self, most: int, text: str | None = None) -> Comparison:
        """The difference that approving makes now; `text`: with what a person made of the proposed one."""
        look = self.look or {}
        new = look.get("proposed") if text is None else text
        return compare(look.get("current"), new, most, room=min(most * LINE_ROOM, MOST_CHARACTERS))


@frozen
class Group:
    """Proposals of one agent or for one note on a page; `total` are those on all pages."""

    key: str
    title: str
    total: int
    proposals: Sequence[Proposal]


def _key_of(row: Row, by: str) -> str:
    """What a proposal belongs to."""
    return str(row["agent"] if by == "agent" else row["note_id"] or row["path"])


def in_order(rows: Sequence[Row], by: str) -> list[Row]:
    """Rows as the queue shows them: what expires first, with all of its group behind it."""
    waiting = sorted(rows, key=lambda row: (str(row["expires_at"]), str(row["id"])))
    groups: dict[str, list[Row]] = {}
    for row in waiting:
        groups.setdefault(_key_of(row, by), []).append(row)
    return [row for group in groups.values() for row in group]


def grouped(shown: Sequence[Proposal], rows: Sequence[Row], by: str) -> list[Group]:
    """The proposals of a page in their groups."""
    groups: dict[str, list[Proposal]] = {}
    for each in shown:
        groups.setdefault(_key_of(each.row, by), []).append(each)
    totals = [_key_of(row, by) for row in rows]
    return [
        Group(
            key,
            key if by == "agent" else str(some[0].row["title"] or some[0].row["path"]),
            max(totals.count(key), len(some)),
            some,
        )
        for key, some in groups.items()
    ]


def write_signs(text: str) -> str:
    """A text to be changed in a field: what nobody sees there is written as ⟦U+202E⟧."""
    parts, done = list[str](), 0
    for sign in find_signs(text):
        if sign.kind == "hidden" and not sign.is_quiet:
            written = "".join(f"{_OPENING}{ord(each):04X}⟧" for each in text[sign.start : sign.end])
            parts += (text[done : sign.start], written)
            done = sign.end
    return "".join([*parts, text[done:]])


def read_signs(text: str) -> str:
    """The text that was written so."""
    return _WRITTEN.sub(lambda found: _character(int(found[1], 16)) or found[0], text)


def _character(code: int) -> str:
    """A character; "" for a number that is none, or one that no file can hold."""
    return "" if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else chr(code)
