"""The sections of a note as they are shown; long work is done in a worker thread."""

from __future__ import annotations

from collections.abc import Sequence

import trio
from attrs import frozen

from lithos.actors.writing.editing import Outlines
from lithos.core.history.outline import Outline, Section
from lithos.core.notes.layout import read_layout, unify_breaks


@frozen
class OutlineRow:
    """A section as it is shown: its path, level, characters of its text and hash."""

    section: str
    level: int
    chars: int
    hash: str


@frozen
class Shown:
    """What of a note is shown by its outline: a text, the rows, and the section that the text is."""

    text: str
    rows: Sequence[OutlineRow] | None
    section: OutlineRow | None


class Sections:
    """Outlines of note files, by what the writer knows of them already."""

    def __init__(self, outlines: Outlines, *, keeps_heading: bool) -> None:
        """`keeps_heading`: titles are elsewhere, so that a leading H1 is a section."""
        self._outlines = outlines
        self._keeps_heading = keeps_heading
        self._limiter = trio.CapacityLimiter(1)

    async def show(self, data: bytes, section: str | None, *, with_rows: bool) -> Shown:
        """A section of a note file, or no text, and the outline.

        Raises `SectionNotFound`, and `InvalidInput` for a body of too many lines.
        """
        return await trio.to_thread.run_sync(self._show, data, section, with_rows, limiter=self._limiter)

    async def learn(self, data: bytes) -> None:
        """Have the outline of a note file known to the writer. Raises `InvalidInput` as above."""
        await trio.to_thread.run_sync(self._learn, data, limiter=self._limiter)

    def _learn(self, data: bytes) -> Outline:
        return self._outlines.read(read_layout(data, keeps_heading=self._keeps_heading))

    def _show(self, data: bytes, section: str | None, with_rows: bool) -> Shown:
        outline = self._learn(data)
        newline = read_layout(data, keeps_heading=self._keeps_heading).newline
        rows = [_row(outline, each, newline) for each in outline.listed()] if with_rows else None
        if section is None:
            return Shown("", rows, None)
        found = outline.find(section)
        text = unify_breaks(outline.text_of(found), newline)
        return Shown(text, rows, _row(outline, found, newline))


def _row(outline: Outline, section: Section, newline: str) -> OutlineRow:
    text = outline.text_of(section)
    chars = len(text) - (text.count("\r\n") if newline == "\r\n" else 0)
    return OutlineRow(section.path, section.level, chars, outline.hash_of(section))
