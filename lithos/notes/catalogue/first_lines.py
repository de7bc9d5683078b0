"""Note previews: the titles and first lines of all notes. Searches use them during a long first indexing.

A preview reads only the beginning of a file. All previews of ten thousand notes take some seconds. Previews
are dropped once every note is indexed. The id of a preview is the id in the file, or the id that Lithos will
assign to the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from attrs import define, field, frozen

from lithos.kernel.values.graphemes import beginning
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import OutsideKnowledge
from lithos.notes.format.document import derive_id
from lithos.text.markdown import visible_text
from lithos.text.words.analysis import FUNCTION_WORDS, fold, words
from lithos.text.words.frequencies import bm25_idf
from lithos.text.yaml.vault_style import VaultStyle

#: Maximum number of previewed notes, then of characters to read per file, then of characters of its lines to
#: store.
MOST_LOOKS: Final = 50_000
_LOOKED_AT: Final = 4_096
LINES: Final = 300
#: Maximum number of words of a query that are searched for.
_MOST_WORDS: Final = 32
_FRONTMATTER: Final = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_NAMED: Final = re.compile(r"^(id|title):[ \t]*(['\"]?)(.{1,300}?)\2[ \t]*\r?$", re.MULTILINE)
_HEADING: Final = re.compile(r"\A\s*#[ \t]+([^\n]{1,300})")


@frozen
class FirstLook:
    """The preview of a note. `lines` are the first lines of its text."""

    id: str
    path: str
    title: str
    lines: str
    mtime_ns: int
    #: Title, file name, heading and lines, case-folded.
    folded: str = field(repr=False)


@define(eq=False)
class FirstLooks:
    """The previews of the notes in a folder.

    One thread reads the previews while other threads may search them.
    """

    _files: NoteFiles
    _style: VaultStyle
    _looks: list[FirstLook] = field(factory=list, init=False)
    _is_over: bool = field(default=False, init=False)

    def read(self) -> None:
        """Read the previews of all notes. `forget` ends the reading early. Blocks."""
        for path, status in self._files.walk():
            if self._is_over or len(self._looks) >= MOST_LOOKS:
                break
            try:
                data = self._files.read(path).data[: 4 * _LOOKED_AT]
            except (OSError, OutsideKnowledge):
                continue  # the start scan reports the error
            text = data.decode("utf-8", "replace")[:_LOOKED_AT]
            self._looks.append(_look(path, text, status.st_mtime_ns, self._style))
        if self._is_over:
            self._looks = []

    def forget(self) -> None:
        """Drop all previews, because all notes are indexed now."""
        self._is_over, self._looks = True, []

    def find(self, query: str, most: int, path_prefix: str = "") -> list[tuple[FirstLook, float]]:
        """Return the previews that contain words of a query, best first.

        The score is between 0 and 1 and based on the idf of the words. Equal scores are sorted by path.
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
    lines = beginning(" ".join(visible_text(body).split()), LINES)
    folded = fold(f"{title} {stem} {heading[1] if heading else ''} {lines}")
    return FirstLook(named.get("id") or derive_id(path), path, title, lines, mtime_ns, folded)


def _names(matter: str) -> Iterator[tuple[str, str]]:
    for found in _NAMED.finditer(matter):
        yield found[1], found[3].strip()
