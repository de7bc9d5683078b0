"""The words of turns: stems like those of the full-text index of the notes, in a table of SQLite's FTS5.

The table stores no text. A second column has the project of each turn as a word, so that a search of one
project reads only the turns of that project.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import apsw
from attrs import frozen

from lithos.kernel.values.times import to_microseconds
from lithos.search.index.fulltext_schema import make_analyzer, prepare_text
from lithos.sessions.rows.blocks import PLACE_BITS
from lithos.text.words.analysis import FUNCTION_WORDS
from lithos.text.words.frequencies import bm25_idf

#: The stems are separated by spaces, and their letters must not be split or folded once more.
WORDS_SCHEMA: Final = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(stems, project, content='', contentless_delete=1,
    tokenize="unicode61 remove_diacritics 0 categories 'L* N* M* Co'");
CREATE VIRTUAL TABLE IF NOT EXISTS vocabulary USING fts5vocab(words, 'row');
"""
#: Maximum number of stems of a query that are searched: the rarest. Each further stem makes a search slower,
#: and common stems hardly change the order.
MOST_STEMS: Final = 16
#: Stems of more than this share of all turns are left out if this number of rarer stems remains.
_COMMON: Final = 0.1
_ENOUGH: Final = 3


class Stemmer:
    """Turns texts into stems. Only one thread at a time may use an instance."""

    def __init__(self) -> None:
        self._analyzer = make_analyzer()
        self._function_words = frozenset(self.stems(" ".join(FUNCTION_WORDS)))

    def stems(self, text: str) -> list[str]:
        """Return the stems of a text in order."""
        return list(self._analyzer.analyze(prepare_text(text)))

    def content_stems(self, text: str) -> list[str]:
        """Return the distinct stems of a query without function words, or all if no other word remains."""
        stems = list(dict.fromkeys(self.stems(text)))
        return [stem for stem in stems if stem not in self._function_words] or stems


@frozen
class TurnScope:
    """The turns that a search may find. None means all.

    `projects` are numbers of projects. Blocks that end before `since` are left out.
    """

    projects: frozenset[int] | None = None
    since: datetime | None = None


EVERY_TURN: Final = TurnScope()


class TurnWords:
    """The table of words, through one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def add(self, rows: Iterable[tuple[int, Sequence[str], int]]) -> None:
        """Add turns as (serial, stems, project number)."""
        self._connection.executemany(
            "INSERT INTO words(rowid,stems,project) VALUES(?,?,?)",
            [(serial, " ".join(stems), f"p{project}") for serial, stems, project in rows],
        )

    def remove(self, serials: Iterable[int]) -> None:
        """Remove turns."""
        self._connection.executemany("DELETE FROM words WHERE rowid=?", [(serial,) for serial in serials])

    def idf(self, stems: Iterable[str], turns: int) -> dict[str, float]:
        """Return the inverse document frequency of each stem. `turns` is the number of all turns."""
        return {stem: bm25_idf(turns, self._count(stem)) for stem in stems}

    def _count(self, stem: str) -> int:
        row = self._connection.execute("SELECT doc FROM vocabulary WHERE term=?", (stem,)).fetchone()
        return int(row[0]) if row else 0

    def search(
        self, idf: Mapping[str, float], turns: int, most: int, scope: TurnScope
    ) -> list[tuple[int, float]]:
        """Return (serial, BM25) of the best turns with any of the stems, best first, ties by serial."""
        stems = _chosen(idf, turns)
        if not stems or scope.projects == frozenset():
            return []
        query = f"stems:({' OR '.join(map(_quoted, stems))})"
        if scope.projects is not None:
            query += f" AND project:({' OR '.join(f'p{each}' for each in sorted(scope.projects))})"
        where, values = "words MATCH ?", list[Any]((query,))
        if scope.since is not None:
            where += f" AND rowid>>{PLACE_BITS} IN (SELECT number FROM blocks WHERE ended>=?)"  # noqa: S608
            values.append(to_microseconds(scope.since))
        rows = self._connection.execute(
            f"SELECT rowid, -bm25(words, 1.0, 0.0) AS score FROM words WHERE {where}"  # noqa: S608 - our names
            " ORDER BY score DESC, rowid LIMIT ?",
            (*values, most),
        )
        return [(int(serial), float(score)) for serial, score in rows]


def _chosen(idf: Mapping[str, float], turns: int) -> Collection[str]:
    """Return the rarest stems of a query that are worth searching."""
    rarest = sorted(idf, key=lambda stem: -idf[stem])[:MOST_STEMS]
    common = bm25_idf(turns, int(turns * _COMMON))
    rare = [stem for stem in rarest if idf[stem] > common]
    return rare if len(rare) >= _ENOUGH else rarest[: max(_ENOUGH, len(rare))]


def _quoted(stem: str) -> str:
    return '"' + stem.replace('"', '""') + '"'
