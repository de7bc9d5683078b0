"""Remembered questions in `stats.db`: the questions for which notes were cited (docs/spec/memory.md §8).

`question_memory` has one entry per question and note. In addition to the specification, it stores the hash
that identifies the question, the agent that asked first, and whether the words may be shown. `question_texts`
stores a sketch of the text of each note, so that rewrites can be detected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import apsw
import numpy as np
from attrs import frozen

from lithos.kernel.databases.table import FLAG, MOMENT, Rows, Table, listed, matching, or_else
from lithos.kernel.values.times import format_optional, format_time
from lithos.memory.model.memory import ApplyFeedback, AskedQuestion
from lithos.memory.model.questions import MatrixEntry, QuestionFilter, RememberedQuestion, kernel, learn
from lithos.memory.rows.question_matrix import QuestionMatrix, QuestionVector
from lithos.search.index.chunk_rows import compare_codes, invert_lengths

_NEW: Final = (
    "INSERT INTO question_memory(digest,note_id,namespace,question,vector,embedder,agent_id,is_private,a,b,"
    "last_at) VALUES(?,?,?,?,?,?,?,?,?,?,?)"
)
#: If a question was ever asked openly, it stays open. `last_at` is the time of the last request.
_OLD: Final = (
    "UPDATE question_memory SET a=:a,b=:b,last_at=IFNULL(:asked_at,last_at),"
    "is_private=MIN(is_private,:is_private) WHERE id=:id"
)
_SHOWN: Final = Table(
    "question_memory", RememberedQuestion, a=or_else(0.0), b=or_else(0.0), is_private=FLAG, last_at=MOMENT
)
_VECTORS: Final = "SELECT id,note_id,vector,a,b,embedder FROM question_memory"
#: Number of entries to embed in one batch, which takes about 10 ms.
EMBEDDED: Final = 200


@frozen
class Unembedded:
    """An entry that has no vector of the current embedder."""

    id: int
    question: str


class QuestionRows(Rows):
    """The entries on one connection. Writes need an open transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection)
        #: Changed entries that the matrix does not have yet.
        self.touched: set[int] = set()

    # -- feedback ------------------------------------------------------------------------------

    def apply(self, feedback: ApplyFeedback, most: int, now: datetime) -> None:
        """Apply the update for the feedback (`learn`). Then delete the oldest entries beyond `most`."""
        question = feedback.question
        if question is None or not most:
            return
        cited = (*feedback.cited, *feedback.elsewhere)
        shown = (*cited, *feedback.misleading, *feedback.ignored)
        known = self._standings(question, shown)
        own = {standing.note_id for standing in known.values() if standing.is_asked}
        before = list(known.values())
        new = [MatrixEntry(note_id, True, 1.0) for note_id in cited if note_id not in own]
        after = list(learn([*before, *new], shown, cited, feedback.misleading))
        moment = format_time(now)
        for entry, old, standing in zip(known, before, after, strict=False):
            if standing == old:
                continue
            is_cited = standing.is_asked and standing.note_id in cited
            changed = {
                "a": standing.a,
                "b": standing.b,
                "asked_at": moment if is_cited else None,
                "is_private": int(not is_cited or question.is_private),
                "id": entry,
            }
            self.connection.execute(_OLD, changed)
            self.touched.add(entry)
        for standing in after[len(before) :]:
            self.add(question, standing, feedback.namespaces.get(standing.note_id, ""), now)
        self._sketch(feedback.sketches)
        if new:
            self.trim(most)

    def _standings(self, question: AskedQuestion, shown: Sequence[str]) -> dict[int, MatrixEntry]:
        """Return the entries of these notes with their kernels, by entry id."""
        rows = self._all(
            "SELECT id,note_id,digest,embedder,vector,a,b FROM question_memory"
            " WHERE note_id IN (SELECT value FROM json_each(?)) ORDER BY id",
            listed(shown),
        )
        kernels = self._kernels(question, rows)
        return {
            row[0]: MatrixEntry(row[1], row[2] == question.digest, k, row[5] or 0.0, row[6] or 0.0)
            for row, k in zip(rows, kernels, strict=True)
        }

    @staticmethod
    def _kernels(question: AskedQuestion, rows: Sequence[Any]) -> list[float]:
        comparable = [
            place
            for place, row in enumerate(rows)
            if question.codes and row[3] == question.embedder and len(row[4] or b"") == len(question.codes)
        ]
        cosines = [1.0 if row[2] == question.digest else 0.0 for row in rows]
        if comparable:
            joined = b"".join(rows[place][4] for place in comparable)
            codes = np.frombuffer(joined, np.int8).reshape(-1, len(question.codes))
            asked = np.frombuffer(question.codes, np.int8)[None]
            found = next(compare_codes(codes, invert_lengths(codes), asked)).tolist()
            for place, cosine in zip(comparable, found, strict=True):
                cosines[place] = max(cosines[place], cosine)
        return [kernel(cosine, question.theta) for cosine in cosines]

    def add(self, question: AskedQuestion, standing: MatrixEntry, namespace: str, now: datetime) -> None:
        """Insert an entry for the question."""
        self._run(
            _NEW, question.digest, standing.note_id, namespace, question.text, question.codes or None,
            question.embedder, question.agent_id, int(question.is_private), standing.a, standing.b,
            format_time(now),
        )  # fmt: skip
        self.touched.add(self.connection.last_insert_rowid())

    def _sketch(self, sketches: Mapping[str, bytes]) -> None:
        """Store the sketches of notes without a sketch.

        The first sketch of a note is kept. Many small changes can therefore add up to a rewrite.
        """
        self._run_all(
            "INSERT OR IGNORE INTO question_texts(note_id,sketch) SELECT ?1,?2"
            " WHERE EXISTS(SELECT 1 FROM question_memory WHERE note_id=?1)",
            list(sketches.items()),
        )

    # -- upkeep --------------------------------------------------------------------------------

    def halve(self, note_id: str, old: bytes, new: bytes) -> int:
        """If the sketch of a note is `old`, halve all its entries and replace the sketch with `new`.

        Return the number of halved entries.
        """
        if not self._run(
            "UPDATE question_texts SET sketch=? WHERE note_id=? AND sketch=?", new, note_id, old
        ):
            return 0
        rows = self._all("UPDATE question_memory SET a=a/2,b=b/2 WHERE note_id=? RETURNING id", note_id)
        self.touched.update(row[0] for row in rows)
        return len(rows)

    def forget(self, wanted: QuestionFilter) -> int:
        """Delete matching entries and return their number."""
        return self._drop(*_condition(wanted))

    def trim(self, most: int) -> int:
        """Delete all entries except the `most` latest. Return the number of deleted entries."""
        surplus = self.count(QuestionFilter()) - most
        if surplus <= 0:
            return 0
        return self._drop("id IN (SELECT id FROM question_memory ORDER BY last_at,id LIMIT ?)", [surplus])

    def _drop(self, where: str, given: Sequence[Any]) -> int:
        """Delete entries, and the sketches of notes without remaining entries.

        Return the number of deleted entries.
        """
        rows = self._all(f"DELETE FROM question_memory WHERE {where} RETURNING id,note_id", *given)  # noqa: S608
        self.touched.update(row[0] for row in rows)
        if rows:
            self._run(
                "DELETE FROM question_texts WHERE note_id IN (SELECT value FROM json_each(?))"
                " AND NOT EXISTS (SELECT 1 FROM question_memory m WHERE m.note_id=question_texts.note_id)",
                listed({row[1] for row in rows}),
            )
        return len(rows)

    def embed(self, embedder: str, codes: Iterable[tuple[int, bytes]]) -> None:
        """Store the vectors of entries."""
        rows = [(vector, embedder, entry) for entry, vector in codes]
        self._run_all("UPDATE question_memory SET vector=?,embedder=? WHERE id=?", rows)
        self.touched.update(entry for _, _, entry in rows)

    # -- matrix --------------------------------------------------------------------------------

    def load(self, matrix: QuestionMatrix, after: int, most: int) -> int | None:
        """Load at most `most` entries into the matrix, starting after entry `after`.

        Return the last loaded entry. Return None if there are no more entries.
        """
        rows = self._all(f"{_VECTORS} WHERE id>? ORDER BY id LIMIT ?", after, most)
        matrix.put(_vectors(rows, matrix.embedder))
        return rows[-1][0] if len(rows) == most else None

    def publish(self, matrix: QuestionMatrix) -> None:
        """Update the changed entries in the matrix from their stored values."""
        touched, self.touched = self.touched, set()
        if not touched or matrix.embedder is None:
            return
        rows = self._all(f"{_VECTORS} WHERE id IN (SELECT value FROM json_each(?))", listed(touched))  # noqa: S608
        matrix.drop(touched - {row[0] for row in rows})
        matrix.put(_vectors(rows, matrix.embedder))

    # -- reading -------------------------------------------------------------------------------

    def get(self, ids: Iterable[int]) -> dict[int, RememberedQuestion]:
        """Return entries by id."""
        shown = self._find(_SHOWN, "WHERE id IN (SELECT value FROM json_each(?))", listed(ids))
        return {each.id: each for each in shown}

    def of_note(self, note_id: str, most: int) -> list[RememberedQuestion]:
        """Return the entries of a note with the most trust."""
        where = "WHERE note_id=? ORDER BY a/(a+b+1.5) DESC,last_at DESC,id LIMIT ?"
        return self._find(_SHOWN, where, note_id, most)

    def newest(self, most: int) -> list[RememberedQuestion]:
        """Return the entries of the questions that were asked last, newest first."""
        return self._find(_SHOWN, "ORDER BY last_at DESC,id DESC LIMIT ?", most)

    def of_question(self, digest: str, note_ids: Iterable[str]) -> list[RememberedQuestion]:
        """Return the entries of these notes for the question with this digest."""
        where = "WHERE note_id IN (SELECT value FROM json_each(?)) AND digest=?"
        return self._find(_SHOWN, where, listed(note_ids), digest)

    def count(self, wanted: QuestionFilter) -> int:
        """Return the number of matching entries."""
        where, given = _condition(wanted)
        return int(self._first(f"SELECT COUNT(*) FROM question_memory WHERE {where}", *given)[0])  # noqa: S608

    def unembedded(self, embedder: str, after: int = 0) -> list[Unembedded]:
        """Return at most `EMBEDDED` entries after `after` that have no vector of this embedder."""
        sql = "SELECT id,question FROM question_memory WHERE id>? AND embedder<>? ORDER BY id LIMIT ?"
        return [Unembedded(*row) for row in self._all(sql, after, embedder, EMBEDDED)]

    def sketch(self, note_id: str) -> bytes | None:
        """Return the sketch of a note's text, or None if the note has no entries."""
        row = self._first("SELECT sketch FROM question_texts WHERE note_id=?", note_id)
        return None if row is None else row[0]

    def notes(self) -> list[str]:
        """Return the ids of notes with entries."""
        return self._texts("SELECT DISTINCT note_id FROM question_memory")


def _vectors(rows: Iterable[Any], embedder: str | None) -> list[QuestionVector]:
    """Return the vectors in the rows. Rows of another embedder give entries without a vector."""
    return [
        QuestionVector(entry, note_id, vector or b"" if of == embedder else b"", a or 0.0, b or 0.0)
        for entry, note_id, vector, a, b, of in rows
    ]


def _condition(wanted: QuestionFilter) -> tuple[str, list[Any]]:
    return matching(
        {
            "note_id IN (SELECT value FROM json_each(?))": None
            if wanted.note_ids is None
            else listed(wanted.note_ids),
            "agent_id=?": wanted.agent_id,
            "last_at>=?": format_optional(wanted.since),
            "last_at<=?": format_optional(wanted.until),
        }
    )
