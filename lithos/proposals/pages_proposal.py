"""Proposals as the console shows them: diffs, groups and texts that a person can edit.

A diff leaves out the fields that every write changes: version, time and contributors. In an editable text,
hidden characters appear as codes such as ⟦U+202E⟧, because a text field would hide them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from lithos.proposals.model import Kind, Proposal
from lithos.proposals.pages_difference import MOST_CHARACTERS, TextComparison, compare
from lithos.proposals.service import ShownProposal
from lithos.text.words.hidden_characters import find_signs

KINDS: Final[Mapping[Kind, str]] = {
    "create": "new note", "update": "change", "delete": "deletion", "move": "move",
}  # fmt: skip
#: Average number of characters that a diff may have per line.
LINE_ROOM: Final = 200
#: Maximum size, in bytes, of a text that can be edited on the page.
LARGEST_EDITED: Final = 80_000
#: The code for an invisible character in a text that a person edits.
_WRITTEN: Final = re.compile(r"⟦U\+([0-9A-F]{4,6})⟧")
_OPENING: Final = "⟦U+"

_WITH_TEXT: Final = ("create", "update")
#: Frontmatter keys that every write sets. Below them: the default values of a new note.
_FOLLOWS: Final = frozenset(("updated_at", "version", "contributors"))
_OF_NEW: Final = frozenset(("id", "created_at", "schema_version"))
_DEFAULTS: Final = frozenset((
    "tags: []", "aliases: []", "confidence: 1.0", "contributors: []", "source: null", "supersedes: null",
    "access_scope: shared", "note_type: observation", "status: active",
))  # fmt: skip
#: A line that starts a frontmatter key.
_KEY: Final = re.compile(r"([^\s:#-][^:]*):")
_FENCE: Final = "---"


@frozen
class ProposalView:
    """A proposal as a page shows it. `shown` is None if there was not enough time to compute its effect."""

    row: Proposal
    shown: ShownProposal | None = None

    @property
    def id(self) -> str:
        """The id of the proposal."""
        return self.row.id

    @property
    def name(self) -> str:
        """The current or proposed title of the note."""
        return self.row.title or self.row.path

    @property
    def does(self) -> str:
        """A name for the kind of change, in one or two words."""
        return KINDS[self.row.kind]

    @property
    def seal(self) -> str:
        """The seal of the displayed change, or "" if no change is displayed."""
        return "" if self.shown is None else self.shown.seal

    @property
    def conflicts(self) -> Sequence[Mapping[str, Any]]:
        """The changes by others that conflict with the proposal."""
        return () if self.shown is None else self.shown.conflicts

    @property
    def can_be_approved(self) -> bool:
        """Return whether the proposal is pending, was loaded and has no conflicts."""
        return self.row.is_pending and self.shown is not None and not self.conflicts

    @property
    def is_stuck(self) -> bool:
        """Return whether no text can resolve the conflicts: a path is taken, or a note is deleted."""
        is_gone = self.shown is not None and self.shown.current is None
        return bool(self.conflicts) and (self.row.kind != "update" or is_gone)

    @property
    def has_odd_place(self) -> bool:
        """Return whether the new path has invisible or look-alike characters."""
        place = self.row.to if self.row.kind == "move" else self.row.path if self.row.kind == "create" else ""
        return any(not sign.is_quiet for sign in find_signs(place or ""))

    def is_warned(self, text: str | None = None) -> bool:
        """Return whether approving the proposal, or `text` instead, needs a confirmation.

        Takes as long as a call of `compare`.
        """
        compared = self.compare(1, text)
        return self.has_odd_place or (compared is not None and compared.is_warned)

    @property
    def text(self) -> str | None:
        """The proposed text.

        None if the proposal has no text, or if there was not enough time to compute the text.
        """
        return None if self.shown is None or self.row.kind == "move" else _text_of(self.shown.proposed)

    @property
    def editable(self) -> str | None:
        """Return the proposed text for a text field, with hidden characters replaced by codes.

        Return None if the text cannot be edited.
        """
        text = self.text
        if text is None or self.row.kind not in _WITH_TEXT or self.is_stuck:
            return None
        written = write_signs(text)
        return None if _OPENING in text or len(written.encode()) > LARGEST_EDITED else written

    def compare(self, most: int, text: str | None = None, *, is_brief: bool = False) -> TextComparison | None:
        """Return the diff of the change that an approval would make now.

        `text` is a text that a person edited. It replaces the proposed text.

        If `is_brief` is true, the default values of a new note and the frontmatter of a deleted note are left
        out. Returns None if there is nothing to compare.
        """
        if self.shown is None or self.row.kind == "move":
            return None
        old, new = _text_of(self.shown.current), self.text if text is None else text
        if self.row.kind == "delete":
            new = None
        if old is not None and new is not None:
            new = _as_before(old, new)
        elif is_brief:
            old, new = _body_of(old), _without_defaults(new)
        return compare(old, new, most, room=min(most * LINE_ROOM, MOST_CHARACTERS))


@frozen
class ProposalGroup:
    """A page's proposals of one agent or for one note. `total` counts the group's proposals on all pages."""

    key: str
    title: str
    total: int
    proposals: Sequence[ProposalView]


def in_order(rows: Sequence[Proposal], by: str) -> list[Proposal]:
    """Return proposals in the order of the queue.

    The group with the earliest expiry comes first.
    """
    groups: dict[str, list[Proposal]] = {}
    for row in sorted(rows, key=lambda row: (row.expires_at, row.id)):
        groups.setdefault(_key_of(row, by), []).append(row)
    return [row for group in groups.values() for row in group]


def grouped(shown: Sequence[ProposalView], rows: Sequence[Proposal], by: str) -> list[ProposalGroup]:
    """Return the proposals of a page in groups."""
    groups: dict[str, list[ProposalView]] = {}
    for each in shown:
        groups.setdefault(_key_of(each.row, by), []).append(each)
    totals = Counter(_key_of(row, by) for row in rows)
    return [
        ProposalGroup(key, key if by == "agent" else some[0].name, totals[key], some)
        for key, some in groups.items()
    ]


def _key_of(row: Proposal, by: str) -> str:
    """Return the key of a proposal's group."""
    return row.agent if by == "agent" else row.note_id


def _text_of(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def _as_before(old: str, new: str) -> str:
    """Return the new text with the automatic frontmatter values of the old text."""
    before = {key: lines for key, lines in _entries(old)[0] if key in _FOLLOWS}
    entries, rest = _entries(new)
    kept = [line for key, lines in entries for line in (before.get(key, []) if key in _FOLLOWS else lines)]
    return "\n".join([*kept, *rest])


def _body_of(text: str | None) -> str | None:
    """Return a text without its frontmatter."""
    if text is None:
        return None
    entries, rest = _entries(text)
    return "\n".join(rest[1:]).lstrip("\r\n") if entries else text


def _without_defaults(text: str | None) -> str | None:
    """Return the text of a new note without default frontmatter values."""
    if text is None:
        return None
    entries, rest = _entries(text)
    kept = [
        line
        for key, lines in entries
        if key not in _FOLLOWS | _OF_NEW
        for line in lines
        if line.rstrip("\r") not in _DEFAULTS
    ]
    return "\n".join([*kept, *rest])


def _entries(text: str) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """Return the frontmatter lines grouped by key, and the remaining lines.

    If the text has no frontmatter, all lines are returned as remaining lines.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return [], lines
    entries: list[tuple[str, list[str]]] = [("", [lines[0]])]
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == _FENCE:
            return entries, lines[number:]
        key = _KEY.match(line)
        if key:
            entries.append((key[1], []))
        entries[-1][1].append(line)
    return [], lines


def write_signs(text: str) -> str:
    """Return a text for a text field. Invisible characters are replaced by codes such as ⟦U+202E⟧."""
    parts, done = list[str](), 0
    for sign in find_signs(text):
        if sign.kind == "hidden" and not sign.is_quiet:
            written = "".join(f"{_OPENING}{ord(each):04X}⟧" for each in text[sign.start : sign.end])
            parts += (text[done : sign.start], written)
            done = sign.end
    return "".join([*parts, text[done:]])


def read_signs(text: str) -> str:
    """Return the text of a text field. Codes are replaced by their characters."""
    return _WRITTEN.sub(lambda found: _character(int(found[1], 16)) or found[0], text)


def _character(code: int) -> str:
    """Return the character of a code, or "" if the code is invalid or no file can contain the character."""
    return "" if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else chr(code)
