"""Previews: titles and first lines of all notes, for searches while a long first start indexes them.

A preview reads only the beginning of each file, which takes some seconds for ten thousand notes. It is
dropped once every note is indexed. Ids are those that files name, or that files without one are going to
have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from attrs import define, field, frozen

from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import OutsideKnowledge
from lithos.notes.format.document import derive_id
from lithos.text.markdown import visible_text
from lithos.text.words.analysis import FUNCTION_WORDS, fold, words
from lithos.text.words.frequencies import bm25_idf
from lithos.text.yaml.vault_style import VaultStyle

#: Maximum number of previewed notes, of characters read of a file, and of characters kept of its lines.
MOST_LOOKS: Final = 50_000
_LOOKED_AT: Final = 4_096
LINES: Final = 300
#: Maximum number of words of a question that are searched.
_MOST_WORDS: Final = 32
_FRONTMATTER: Final = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_NAMED: Final = re.compile(r"^(id|title):[ \t]*(['\"]?)(.{1,300}?)\2[ \t]*\r?$", re.MULTILINE)
_HEADING: Final = re.compile(r"\A\s*#[ \t]+([^\n]{1,300})")


@frozen
class FirstLook:
    """The beginning of a note's file: `lines` are the first ones of its text."""

    id: str
    path: str
    title: str
    lines: str
    mtime_ns: int
    #: Title, file name, heading and lines, folded.
    folded: str = field(repr=False)


@define(eq=False)
class FirstLooks:
    """The previews of the notes of a folder; one thread reads, others may search meanwhile."""

    _files: NoteFiles
    _style: VaultStyle
    _looks: list[FirstLook] = field(factory=list, init=False)
    _is_over: bool = field(default=False, init=False)

    def read(self) -> None:
        """Read the previews of all notes; ends early after `forget`. Blocks."""
        for path, status in self._files.walk():
            if self._is_over or len(self._looks) >= MOST_LOOKS:
                break
            try:
                data = self._files.read(path).data[: 4 * _LOOKED_AT]
            except (OSError, OutsideKnowledge):
                continue  # the scan reports the error
            text = data.decode("utf-8", "replace")[:_LOOKED_AT]
            self._looks.append(_look(path, text, status.st_mtime_ns, self._style))
        if self._is_over:
            self._looks = []

    def forget(self) -> None:
        """Drop the previews, because every note is indexed now."""
        self._is_over, self._looks = True, []

    def find(self, query: str, most: int, path_prefix: str = "") -> list[tuple[FirstLook, float]]:
        """Return the previews with words of a query, best first by the idf of these, ties by path; scores are
        0..1.
        """
        looks = self._looks
        asked = dict.fromkeys(word for _, word in words(fold(query[:1_000])))
        wanted = ([word for word in asked if word not in FUNCTION_WORDS] or list(asked))[:_MOST_WORDS]
        scores: dict[int, float] = {}
        total = 0.0
        for word in wanted:
            having = [number for number, look in enumerate(looks) if word in look.folded]
            weight = bm25_idf(max(1, len(looks)), min(len(having), len(looks)))
            total += weight
            for number in having:
                scores[number] = scores.get(number, 0.0) + weight
        found = [(looks[number], score / total) for number, score in scores.items()]
        passing = [each for each in found if each[0].path.startswith(path_prefix)]
        return sorted(passing, key=lambda each: (-each[1], each[0].path))[:most]


def _look(path: str, text: str, mtime_ns: int, style: VaultStyle) -> FirstLook:
    matter = _FRONTMATTER.match(text)
    named = dict(_names(matter[1])) if matter else {}
    body = text[matter.end() :] if matter else text
    heading, stem = _HEADING.match(body), PurePosixPath(path).stem
    if style.is_foreign:
        title = named.get("title") or stem
    else:
        title = (heading[1].strip() if heading else "") or named.get("title") or stem
    lines = " ".join(visible_text(body).split())[:LINES]
    folded = fold(f"{title} {stem} {heading[1] if heading else ''} {lines}")
    return FirstLook(named.get("id") or derive_id(path), path, title, lines, mtime_ns, folded)


def _names(matter: str) -> Iterator[tuple[str, str]]:
    for found in _NAMED.finditer(matter):
        yield found[1], found[3].strip()
