"""Reader for Logseq graphs: pages, journals, and the names that their links use. Blocks.

All files are scanned once before they are read as notes, because some facts depend on other files: the
spelling of linked days, the page that contains a referenced block, and namespaces whose last part is also a
file name. The scan needs some hundred bytes of memory per file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

from lithos.imports.model.logseq import (
    Properties,
    Settings,
    page_name,
    read_day,
    read_properties,
    read_settings,
    write_day,
)
from lithos.imports.model.texts import tags_of
from lithos.text.markdown import mask_code
from lithos.text.yaml.layout import read_layout
from lithos.text.yaml.nodes import UnreadableNote

#: Maximum number of bytes to read from the settings file.
_LARGEST_SETTINGS: Final = 1_000_000
_LINK: Final = re.compile(r"\[\[([^\[\]|\n]{1,1000})(?=\]\]|\|)")
_TITLE: Final = re.compile(r"^title:[ \t]+(\S[^\n]{0,1000})", re.MULTILINE)
_BLOCK: Final = re.compile(
    r"^[ \t]*(?:- )?id::[ \t]+([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})[ \t]*\r?$", re.M
)
_REFERENCE: Final = re.compile(r"\(\(([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\)\)")
#: Maximum number of blocks, and of spellings of days, to remember.
_MOST: Final = 1_000_000


@frozen(kw_only=True)
class LogseqPage:
    """One file of the graph after reading: its text and its frontmatter.

    `is_titled` is true if the frontmatter must contain the title. `dead` lists references to missing blocks.
    """

    title: str
    data: bytes
    is_titled: bool
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    properties: Mapping[str, Any]
    created_at: datetime | None
    dead: tuple[str, ...]


@define  # bounded: one for each page of an import
class LogseqGraph:
    """Facts collected from all files of a graph."""

    settings: Settings
    #: The spellings that links use for each day.
    _days: dict[date, dict[str, None]] = field(factory=dict)
    #: For each block with an id, the name of its file without `.md`.
    _blocks: dict[str, str] = field(factory=dict)
    #: For each page with a namespace, the name of its file without `.md`.
    _namespaced: dict[str, str] = field(factory=dict)
    _stems: set[str] = field(factory=set)
    _remembered: int = 0

    @classmethod
    def look(cls, root: Path, files: Iterable[tuple[str, bytes]]) -> LogseqGraph:
        """Collect facts from the files. Each file is a pair of path and bytes."""
        graph = cls(_read_settings(root / "logseq" / "config.edn"))
        for name, data in files:
            graph._see(name, data)
        return graph

    def _see(self, name: str, data: bytes) -> None:
        stem, text = _stem(name), data.decode("utf-8", "replace")
        self._stems.add(stem.casefold())
        page = _title_of(data) or page_name(stem)
        if "/" in page:
            self._namespaced[page.casefold()] = stem
        for found in _LINK.finditer(text):
            day = read_day(found[1], self.settings.title_format)
            if day is not None and self._remembered < _MOST:
                self._days.setdefault(day, {})[found[1].strip()] = None
                self._remembered += 1
        for found in _BLOCK.finditer(text):
            if len(self._blocks) < _MOST:
                self._blocks.setdefault(found[1], stem)

    def page(self, name: str, data: bytes, own_title: str | None) -> LogseqPage:
        """Return a file as a note. `own_title` is from its frontmatter or file name. `data` is UTF-8."""
        stem = _stem(name)
        data, dead = self._rewritten(data)
        try:
            layout = read_layout(data)
            said, has_heading = read_properties(layout.content), layout.heading is not None
            has_title = own_title is not None and own_title != stem
        except UnreadableNote:
            said, has_heading, has_title = Properties(), True, True
        day = self._day_of(name)
        called = said.title or page_name(stem)
        spellings: tuple[str, ...] = ()
        if day is not None:
            called = said.title or write_day(day, self.settings.title_format)
            spellings = tuple(self._days.get(day, ()))
        is_titled = called != stem and not has_heading and not has_title
        names = dict.fromkeys((*said.aliases, *(() if is_titled else (called,)), page_name(stem), *spellings))
        title = called if is_titled else own_title or called
        return LogseqPage(
            title=title,
            data=data,
            is_titled=is_titled,
            aliases=tuple(each for each in names if each not in (stem, title)),
            tags=tags_of(said.tags),
            properties=said.others,
            created_at=None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC),
            dead=dead,
        )

    def _day_of(self, name: str) -> date | None:
        """Return the day of a journal page, or None for other pages."""
        if not name.startswith(f"{self.settings.journals}/"):
            return None
        return read_day(_stem(name), self.settings.file_format)

    def _rewritten(self, data: bytes) -> tuple[bytes, tuple[str, ...]]:
        """Return the text with links that resolve in this knowledge base, and the dead references.

        Code is not changed.
        """
        text = data.decode()
        masked = mask_code(text)
        edits: list[tuple[int, int, str]] = []
        dead: dict[str, None] = {}
        for found in _REFERENCE.finditer(masked):
            stem = self._blocks.get(found[1])
            if stem is None:
                dead[found[0]] = None
            else:
                edits.append((found.start(), found.end(), f"[[{stem}#^{found[1]}]]"))
        for found in _LINK.finditer(masked):
            target = text[found.start(1) : found.end(1)]
            stem = self._namespaced.get(target.strip().casefold())
            # Also check the last part of a path, because it may be the name of another page.
            if stem is not None and target.rpartition("/")[2].strip().casefold() in self._stems:
                shown = "" if text.startswith("|", found.end()) else f"|{target}"
                edits.append((found.start(1), found.end(1), stem + shown))
        if not edits:
            return data, tuple(dead)
        pieces, position = list[str](), 0
        for start, end, new in sorted(edits):
            pieces += [text[position:start], new]
            position = end
        return "".join([*pieces, text[position:]]).encode(), tuple(dead)


def _title_of(data: bytes) -> str | None:
    """Return the title from the page's properties or frontmatter."""
    try:
        layout = read_layout(data)
    except UnreadableNote:
        return None
    found = _TITLE.search(layout.yaml)
    return read_properties(layout.content).title or (found[1].strip("\"' \r") if found else None)


def _stem(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".md")


def _read_settings(path: Path) -> Settings:
    try:
        with path.open("rb") as file:
            return read_settings(file.read(_LARGEST_SETTINGS).decode("utf-8", "replace"))
    except OSError:
        return Settings()
