"""The writing methods of the session store. Each is one transaction, and one thread at a time may write.

A crash therefore leaves either all or nothing of a step: the text, the words, the vectors and the progress in
the transcript always fit together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
from attrs import evolve, field, frozen

from lithos.kernel.values.times import to_microseconds
from lithos.search.index.chunk_rows import Codes
from lithos.sessions.model.session import Turn, title_of
from lithos.sessions.rows.blocks import (
    FULL_SIZE,
    FULL_TURNS,
    BlockVectors,
    latest,
    pack_turns,
    serial_of,
    unpack_turns,
)
from lithos.sessions.rows.removal import SessionRemoval
from lithos.sessions.rows.schema import (
    NO_PROJECT,
    PROGRESS_COLUMNS,
    Progress,
    SessionFacts,
    read_progress,
)
from lithos.sessions.rows.words import Stemmer, TurnWords

#: Name of the model of turns without vectors.
NO_MODEL: Final = ""


@frozen
class Embedding:
    """Makes the vectors of turns. `model` names the model, and is "" while no model is loaded."""

    model: str = NO_MODEL
    encode: Callable[[Sequence[Turn]], list[Codes]] = field(
        default=lambda turns: [np.zeros((0, 0), np.int8) for _ in turns]
    )


@frozen(kw_only=True)
class _Block:
    number: int | None
    first: int
    turns: list[Turn]
    codes: list[Codes]
    #: Place of the first turn that is new or changed.
    changed: int
    model: str


class SessionStore(SessionRemoval):
    """Stores sessions. All texts must be masked."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._writing_stemmer: Stemmer | None = None

    # -- progress ------------------------------------------------------------------------------

    def all_progress(self) -> dict[str, Progress]:
        """Return the progress in every transcript by path. Only the writing thread may call this."""
        if not self.is_there:
            return {}
        rows = self._all(f"SELECT {PROGRESS_COLUMNS} FROM transcripts")  # noqa: S608 - our names
        return {row[0]: read_progress(row) for row in rows}

    def store_progress(self, progress: Progress) -> None:
        """Store the progress in a transcript of which nothing was indexed."""
        with self.transaction():
            self._store_progress(progress)

    def _store_progress(self, progress: Progress) -> None:
        marks = ",".join("?" * len(PROGRESS_COLUMNS.split(",")))
        self._writer.execute(
            f"INSERT OR REPLACE INTO transcripts({PROGRESS_COLUMNS}) VALUES({marks})",
            progress.row(),
        )

    # -- sessions ------------------------------------------------------------------------------

    def owner_of(self, session: str) -> str | None:
        """Return the transcript of a session, "" if that is gone, and None if the session is unknown."""
        if not self.is_there:
            return None
        row = self._first("SELECT path,gone FROM sessions WHERE id=?", (session,))
        return None if row is None else str(row[0]) if row[1] is None else ""

    def last_turn(self, session: int) -> Turn | None:
        """Return the last stored turn of a session, which further lines may extend."""
        row = self._first(
            "SELECT first,text FROM blocks WHERE session=? ORDER BY first DESC LIMIT 1", (session,)
        )
        return None if row is None else unpack_turns(row[1], row[0])[-1]

    def keys_of(self, session: int) -> set[str]:
        """Return the client's ids of all stored turns of a session."""
        rows = self._all("SELECT first,text FROM blocks WHERE session=?", (session,))
        return {turn.key for first, text in rows for turn in unpack_turns(text, first) if turn.key}

    def size_of(self, session: int) -> tuple[int, int]:
        """Return the number of turns and of characters of a session."""
        row = self._first("SELECT turns,size FROM sessions WHERE number=?", (session,))
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def append(
        self,
        facts: SessionFacts,
        progress: Progress,
        turns: Sequence[Turn],
        embedding: Embedding,
        now: datetime,
        *,
        starts_again: bool = False,
    ) -> Progress:
        """Store turns of a session and the progress in its transcript. Return the progress as stored.

        A turn with the number of the last stored turn replaces it. With `starts_again`, the stored turns are
        deleted first, because the transcript was replaced. If the transcript was of another session before,
        that session is gone.
        """
        with self.transaction():
            number = self._require_session(facts)
            self._writer.execute(
                "UPDATE sessions SET gone=? WHERE number=? AND number<>? AND gone IS NULL",
                (to_microseconds(now), progress.session, number),
            )
            if starts_again:
                self._delete_blocks([number])
                self._writer.execute(
                    "UPDATE sessions SET turns=0,size=0,begun=NULL,ended=NULL,title='' WHERE number=?",
                    (number,),
                )
            project = self._set_facts(number, facts)
            for block in self._arrange(number, turns, embedding):
                self._put_block(number, project, block)
            self._count(number, turns)
            stored = evolve(progress, session=number)
            self._store_progress(stored)
        return stored

    def _require_session(self, facts: SessionFacts) -> int:
        self._writer.execute(
            "INSERT INTO sessions(id,client,agent,project,title,turns,size,path,folder)"
            " VALUES(?,?,?,?,'',0,0,?,?) ON CONFLICT(id) DO NOTHING",
            (facts.id, facts.client, facts.agent, NO_PROJECT, facts.path, facts.folder),
        )
        found = self._all("SELECT number FROM sessions WHERE id=?", (facts.id,))
        return int(found[0][0])

    def _set_facts(self, number: int, facts: SessionFacts) -> int:
        """Store the facts, and return the number of the project. A known project is kept."""
        ((project,),) = self._all("SELECT project FROM sessions WHERE number=?", (number,))
        if project == NO_PROJECT and facts.project is not None:
            project = self._project_number(facts.project)
            self._index_again(number, project)
        self._writer.execute(
            "UPDATE sessions SET client=?,agent=?,path=?,folder=?,project=?,gone=NULL WHERE number=?",
            (facts.client, facts.agent, facts.path, facts.folder, project, number),
        )
        return int(project)

    def _project_number(self, key: str) -> int:
        """Return the number of a project. Keys that differ only in case are one project."""
        for number, known in self._all("SELECT number,key FROM projects"):
            if known.casefold() == key.casefold():
                return int(number)
        self._writer.execute("INSERT INTO projects(key) VALUES(?)", (key,))
        return self._writer.last_insert_rowid()

    def _index_again(self, session: int, project: int) -> None:
        """Store the words of a session under another project."""
        rows = self._all("SELECT number,first,text FROM blocks WHERE session=?", (session,))
        for number, first, text in rows:
            self._put_words(number, project, unpack_turns(text, first), 0, is_known=True)

    def _arrange(self, session: int, turns: Sequence[Turn], embedding: Embedding) -> list[_Block]:
        """Return the blocks that change: the last one with further turns, and new ones."""
        if not turns:
            return []
        row = self._first(
            "SELECT number,first,text,model,places,inverse,codes FROM blocks WHERE session=?"
            " ORDER BY first DESC LIMIT 1",
            (session,),
        )
        codes = embedding.encode(turns)
        blocks = list[_Block]()
        if row is not None:
            blocks.append(self._last_block(row, turns[0].number, embedding))
        for turn, of_turn in zip(turns, codes, strict=True):
            if not blocks or _is_full(blocks[-1].turns):
                blocks.append(
                    _Block(
                        number=None, first=turn.number, turns=[], codes=[], changed=0, model=embedding.model
                    )
                )
            blocks[-1].turns.append(turn)
            blocks[-1].codes.append(of_turn)
        return [each for each in blocks if each.changed < len(each.turns)]

    def _last_block(self, row: Sequence[Any], first_new: int, embedding: Embedding) -> _Block:
        number, first, text, model, *vectors = row
        turns = unpack_turns(text, first)
        kept = turns[: first_new - first]
        if model == embedding.model and model != NO_MODEL:
            codes = BlockVectors.unpack(*vectors).before(len(kept))
        else:
            codes = embedding.encode(kept)
        return _Block(
            number=number, first=first, turns=kept, codes=codes, changed=len(kept), model=embedding.model
        )

    def _put_block(self, session: int, project: int, block: _Block) -> None:
        size, ended = sum(each.size for each in block.turns), latest(block.turns)
        vectors = BlockVectors.of(block.codes if block.model != NO_MODEL else ()).pack()
        values = (
            len(block.turns),
            size,
            None if ended is None else to_microseconds(ended),
            pack_turns(block.turns),
            block.model,
            *vectors,
        )
        number = block.number
        if number is None:
            self._writer.execute(
                "INSERT INTO blocks(session,first,turns,size,ended,text,model,places,inverse,codes)"
                " VALUES(?,?,?,?,?,?,?,?,?,?)",
                (session, block.first, *values),
            )
            number = self._writer.last_insert_rowid()
        else:
            self._writer.execute(
                "UPDATE blocks SET turns=?,size=?,ended=?,text=?,model=?,places=?,inverse=?,codes=?"
                " WHERE number=?",
                (*values, number),
            )
        self._put_words(number, project, block.turns, block.changed, is_known=block.number is not None)

    def _put_words(
        self, block: int, project: int, turns: Sequence[Turn], first: int, *, is_known: bool
    ) -> None:
        if self._writing_stemmer is None:
            self._writing_stemmer = Stemmer()
        stems, words = self._writing_stemmer.stems, TurnWords(self._writer)
        changed = [(serial_of(block, place), turns[place]) for place in range(first, len(turns))]
        if is_known:
            words.remove(serial for serial, _ in changed)
        words.add((serial, stems("\n".join(turn.parts())), project) for serial, turn in changed)

    def _count(self, session: int, turns: Sequence[Turn]) -> None:
        """Store the numbers, times and title of a session after its blocks have changed."""
        begun = min((each.when for each in turns if each.when is not None), default=None)
        ended = latest(turns)
        prompt = next((title_of(each.text) for each in turns if each.who != "assistant" and each.text), "")
        self._writer.execute(
            "UPDATE sessions SET"
            " turns=(SELECT COALESCE(SUM(turns),0) FROM blocks WHERE session=?1),"
            " size=(SELECT COALESCE(SUM(size),0) FROM blocks WHERE session=?1),"
            " begun=MIN(COALESCE(begun,?2),COALESCE(?2,begun)),"
            " ended=MAX(COALESCE(ended,?3),COALESCE(?3,ended)),"
            " title=CASE title WHEN '' THEN ?4 ELSE title END WHERE number=?1",
            (
                session,
                None if begun is None else to_microseconds(begun),
                None if ended is None else to_microseconds(ended),
                prompt,
            ),
        )

    def totals(self) -> tuple[int, int, dict[str, int]]:
        """Return the numbers of sessions and turns, and the number of sessions of each folder."""
        if not self.is_there:
            return 0, 0, {}
        rows = self._all("SELECT folder,COUNT(*),SUM(turns) FROM sessions GROUP BY folder")
        folders = {str(folder): int(count) for folder, count, _ in rows}
        return sum(folders.values()), sum(int(turns) for _, _, turns in rows), folders

    def embedded(self, model: str) -> int:
        """Return the number of turns with vectors of a model."""
        if not self.is_there or model == NO_MODEL:
            return 0
        return int(self._first("SELECT COALESCE(SUM(turns),0) FROM blocks WHERE model=?", (model,))[0])

    # -- vectors of another model --------------------------------------------------------------

    def embed_some(self, embedding: Embedding, most: int) -> int:
        """Embed the turns of up to `most` blocks whose vectors are of another model. Return their number."""
        if not self.is_there or embedding.model == NO_MODEL:
            return 0
        rows = self._all(
            "SELECT number,first,text FROM blocks WHERE model<>? ORDER BY number DESC LIMIT ?",
            (embedding.model, most),
        )
        with self.transaction():
            for number, first, text in rows:
                vectors = BlockVectors.of(embedding.encode(unpack_turns(text, first))).pack()
                self._writer.execute(
                    "UPDATE blocks SET model=?,places=?,inverse=?,codes=? WHERE number=?",
                    (embedding.model, *vectors, number),
                )
        return len(rows)


def _is_full(turns: Sequence[Turn]) -> bool:
    return len(turns) >= FULL_TURNS or sum(each.size for each in turns) >= FULL_SIZE
