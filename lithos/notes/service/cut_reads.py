"""Memory of partially returned texts. It prevents an agent from writing back a part as the whole note.

See docs/spec/tools.md §3. A partial text is remembered by note for the agent that read it. If the read named
no agent, the text is remembered for all agents. A restart clears the memory. The memory belongs to the event
loop, so only one task at a time uses it.
"""

from __future__ import annotations

import re
from typing import Final

import attrs
from attrs import frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.limits import Fitting
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.service.texts import NoteTexts
from lithos.notes.writing.messages import WriteNote
from lithos.text.yaml.layout import trim_content

#: Maximum number of characters in all remembered texts, and maximum number of texts per note.
_ROOM: Final = 4 * 1024 * 1024
_PIECES: Final = 8
#: Minimum share of a text that counts as most of it, and maximum share that counts as nothing. Shares are
#: measured in characters of whole lines.
_MOST, _NOTHING = 0.5, 0.05
#: Maximum growth of a cut text that an agent edits: a factor for the length, and a number of additional
#: characters.
_GROWTH, _ADDED = 1.25, 500
#: Matches the ending of a cut text: dots, or the remark that `fetch` appends.
_MARKS: Final = re.compile(r"(?:\s*\[There is more: fetch [^\[\]\n]{1,300}\])?\s*(?:\.\.\.|\u2026)?\s*\Z")
#: Number of characters at the end of a text that are searched for such an ending.
_MARKED: Final = 400


@frozen(kw_only=True)
class _Piece:
    """A part of a note's text. `start` is the offset of the part in the text, or None for a section.

    `is_read_on` means that the reader has also read the following part.
    """

    agent: str | None
    text: str
    start: int | None
    is_cut: bool
    is_read_on: bool = False

    @property
    def is_first(self) -> bool:
        return self.start == 0


class CutReads(Fitting[int, tuple[_Piece, ...]]):
    """Partial reads of notes, by serial number of the note."""

    def __init__(self, catalogue: Catalogue, texts: NoteTexts) -> None:
        super().__init__(_ROOM, lambda pieces: sum(len(piece.text) + 200 for piece in pieces))
        self._catalogue = catalogue
        self._texts = texts
        catalogue.when_removed.append(self.forget)

    def see(self, note_id: str, agent: str | None, text: str, start: int | None, *, is_cut: bool) -> None:
        """Record that an agent read a note's text from the offset `start`.

        If `is_cut` is False, the agent read the text up to the end.
        """
        entry = self._catalogue.get(note_id)
        known = () if entry is None else self._kept.get(entry.serial, ())
        if entry is None or (not is_cut and start == 0 and not known):
            return  # The agent read the whole text, which is the most common case.
        if start is not None:
            known = tuple(_read_on(piece, agent, start) for piece in known)
        if is_cut or start != 0:
            piece = _Piece(agent=agent, text=_bare(text), start=start, is_cut=is_cut)
            known = (*(each for each in known if each.text != piece.text), piece)[-_PIECES:]
        self._keep(entry.serial, known)

    async def check(self, request: WriteNote) -> None:
        """Raise `InvalidInput` if a text would replace a whole note but is only a part of the note."""
        entry = self._catalogue.get(request.id or "")
        pieces = self._pieces_for(request.id, request.agent)
        if request.content is None or entry is None or not pieces:
            return
        loaded = await self._texts.load(entry)
        if loaded is None:
            return
        given, old = _bare(request.content), _bare(loaded.document.content)
        for piece in pieces:
            if _stands_for_whole(given, piece, old):
                raise InvalidInput(_refusal(piece, len(given), len(old)))

    def check_section(self, note_id: str | None, agent: str, text: str) -> None:
        """Raise `InvalidInput` if a text would replace a whole section but is only a part of the section."""
        given = _bare(text)
        cut = (each for each in self._pieces_for(note_id, agent) if each.start is None and each.is_cut)
        if any(piece.text == given for piece in cut):
            raise InvalidInput(
                "The text is only a part of the section: the answer that you read was cut, and "
                "the rest of the section would be lost. Nothing was changed. Read on with offset "
                "= next_offset, or change one place with op find_replace, append or prepend."
            )

    def _pieces_for(self, note_id: str | None, agent: str) -> list[_Piece]:
        entry = self._catalogue.get(note_id or "")
        pieces = () if entry is None else self._kept.get(entry.serial, ())
        return [piece for piece in pieces if piece.agent in (None, agent)]


def _read_on(piece: _Piece, agent: str | None, start: int) -> _Piece:
    """Return the piece.

    If its reader now reads the following text or the whole text, mark the piece as read on.
    """
    reaches = start == 0 or (
        piece.start is not None and piece.start < start <= piece.start + len(piece.text) + 9
    )
    is_same = piece.agent == agent and not piece.is_read_on
    return attrs.evolve(piece, is_read_on=True) if is_same and reaches else piece


def _bare(text: str) -> str:
    """Return a text without surrounding blank lines and without the ending of a cut text."""
    text = trim_content(text.replace("\r\n", "\n"))
    marked = max(0, len(text) - _MARKED)
    return text[:marked] + _MARKS.sub("", text[marked:], count=1)


def _stands_for_whole(given: str, piece: _Piece, old: str) -> bool:
    """Return whether a text is a piece of the old text, perhaps with changes, and lacks the rest.

    A piece of a section, or a piece that starts at an offset, must match exactly. A piece from the beginning
    of the text must match exactly if its reader has also read the following part.
    """
    lines = _lines(piece.text)
    if len(given) >= len(old) or _share(lines, old) < _MOST:
        return False
    if given == piece.text:
        return True
    if not piece.is_first or piece.is_read_on or len(given) > len(piece.text) * _GROWTH + _ADDED:
        return False
    begins_alike = given.startswith(piece.text[: int(_MOST * len(piece.text)) + 1])
    if not begins_alike and _share(lines, given) < _MOST:
        return False
    rest = old[len(piece.text) :] if old.startswith(piece.text) else old
    lost = _lines(rest) - lines
    return bool(lost) and _share(lost, given) < _NOTHING


def _lines(text: str) -> set[str]:
    return {stripped for line in text.split("\n") if (stripped := line.strip())}


def _share(lines: set[str], text: str) -> float:
    """Return the share of the lines that a text contains. Lines are weighted by their number of characters.

    The last line of a cut text may be partial.
    """
    there = _lines(text)
    found = sum(len(line) for line in lines if line in there)
    whole = sum(map(len, lines))
    return found / whole if found or not whole else float(any(text.startswith(line) for line in lines))


def _refusal(piece: _Piece, given: int, old: int) -> str:
    what = "one section of" if piece.start is None else "a part of"
    return (
        f"content has {given:,} characters and seems to be only {what} the note that you read, "
        f"which has {old:,}: the rest would be lost. Nothing was changed. Change one place with "
        "lithos_note_edit, or read on with offset = next_offset and send the whole text; to "
        "replace the whole text with this, give replace_all: true."
    )
