"""The reading methods of the session store. They block, and only one thread at a time may use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar, Final

from attrs import frozen

from lithos.kernel.databases.database import SET_ASIDE, DatabaseLayout, LearningDatabase
from lithos.kernel.log import get_logger
from lithos.kernel.values.times import from_microseconds, to_microseconds
from lithos.search.embedding.embedder import Matrix
from lithos.search.index.chunk_rows import VectorHit
from lithos.search.ranking.lead_coverage import Covered, LeadText, lead_coverage
from lithos.sessions.model.passages import passages_of
from lithos.sessions.model.session import Session, Turn
from lithos.sessions.rows.blocks import place_of, serial_of, unpack_some, unpack_turns
from lithos.sessions.rows.meaning import nearest_turns
from lithos.sessions.rows.schema import NO_PROJECT, SCHEMA, upgrade
from lithos.sessions.rows.words import Stemmer, TurnScope, TurnWords
from lithos.text.words.frequencies import bm25_idf

_COLUMNS: Final = "s.number,s.id,s.client,s.agent,p.key,s.title,s.begun,s.ended,s.turns,s.path,s.gone"
_FROM: Final = "FROM sessions s LEFT JOIN projects p ON p.number=s.project"


@frozen(kw_only=True)
class SessionFilter:
    """Conditions on sessions. None and `projects=None` mean all. `day` is a day in UTC."""

    projects: frozenset[int] | None = None
    day: datetime | None = None
    agent: str | None = None
    client: str | None = None

    def where(self) -> tuple[str, list[Any]]:
        """Return the SQL condition and its values."""
        parts, values = ["1"], list[Any]()
        if self.projects is not None:
            parts.append(f"s.project IN ({','.join('?' * len(self.projects))})")
            values += sorted(self.projects)
        if self.day is not None:
            parts.append("s.begun<? AND s.ended>=?")
            values += [to_microseconds(self.day + timedelta(days=1)), to_microseconds(self.day)]
        for column, value in (("agent", self.agent), ("client", self.client)):
            if value is not None:
                parts.append(f"s.{column}=?")
                values.append(value)
        return " AND ".join(parts), values


class SessionReading(LearningDatabase):
    """Reads `sessions.db`. Without the file, all results are empty."""

    layout = DatabaseLayout(SCHEMA, upgrade, set_aside=SET_ASIDE)
    log: ClassVar = get_logger("lithos.sessions")

    @cached_property
    def stemmer(self) -> Stemmer:
        """Return the stemmer of the reading thread."""
        return Stemmer()

    def projects(self) -> dict[int, str | None]:
        """Return the project key of each number, None for the number of sessions without a project."""
        if not self.is_there:
            return {}
        rows: list[Any] = self._reader.execute("SELECT number,key FROM projects").fetchall()
        return {NO_PROJECT: None, **dict(rows)}

    def count(self, among: SessionFilter) -> int:
        """Return the number of sessions that match."""
        if not self.is_there:
            return 0
        where, values = among.where()
        found: Any = self._reader.execute(
            f"SELECT COUNT(*) {_FROM} WHERE {where}",
            values,
        ).fetchone()
        return int(found[0])

    def page(self, among: SessionFilter, limit: int, offset: int) -> list[Session]:
        """Return the sessions that match, the newest first."""
        if not self.is_there:
            return []
        where, values = among.where()
        rows = self._reader.execute(
            f"SELECT {_COLUMNS} {_FROM} WHERE {where} ORDER BY s.ended DESC, s.number DESC LIMIT ? OFFSET ?",
            (*values, limit, offset),
        )
        return [self._session(row) for row in rows.fetchall()]

    def find(self, session: str) -> tuple[int, int, Session] | None:
        """Return the number of a session, the number of its project, and the session. None if unknown."""
        if not self.is_there:
            return None
        row = self._reader.execute(
            f"SELECT {_COLUMNS},s.project {_FROM} WHERE s.id=?",
            (session,),
        ).fetchone()
        return None if row is None else (int(row[0]), int(row[-1]), self._session(row[:-1]))

    def turns(self, session: int, first: int, last: int) -> list[Turn]:
        """Return the turns of a session by number."""
        rows: Any = self._reader.execute(
            "SELECT first,text FROM blocks WHERE session=? AND first<=? AND first+turns>? ORDER BY first",
            (session, last, first),
        )
        return [
            turn
            for begin, text in rows.fetchall()
            for turn in unpack_turns(text, begin)
            if first <= turn.number <= last
        ]

    def at(self, serials: Iterable[int]) -> dict[int, tuple[Session, Turn]]:
        """Return the turns with these serials, each with its session. Missing turns are left out."""
        found: dict[int, tuple[Session, Turn]] = {}
        sessions: dict[int, Session] = {}
        for serial, (session, turn) in self._turns_at(serials).items():
            if session not in sessions:
                row = self._reader.execute(
                    f"SELECT {_COLUMNS} {_FROM} WHERE s.number=?",
                    (session,),
                ).fetchone()
                if row is None:
                    continue
                sessions[session] = self._session(row)
            found[serial] = sessions[session], turn
        return found

    def _turns_at(self, serials: Iterable[int]) -> dict[int, tuple[int, Turn]]:
        """Return the session number and the turn of each serial. Each block is unpacked once."""
        places: dict[int, list[int]] = {}
        for serial in serials:
            block, place = place_of(serial)
            places.setdefault(block, []).append(place)
        found: dict[int, tuple[int, Turn]] = {}
        for block, wanted in places.items():
            row: Any = self._reader.execute(
                "SELECT session,first,text FROM blocks WHERE number=?", (block,)
            ).fetchone()
            if row is not None:
                turns = unpack_some(row[2], row[1], wanted)
                found |= {serial_of(block, place): (row[0], turn) for place, turn in turns.items()}
        return found

    # -- search --------------------------------------------------------------------------------

    def turn_count(self) -> int:
        """Return the number of all turns."""
        if not self.is_there:
            return 0
        found: Any = self._reader.execute("SELECT COALESCE(SUM(turns),0) FROM sessions").fetchone()
        return int(found[0])

    def idf(self, stems: Iterable[str], turns: int) -> dict[str, float]:
        """Return the inverse document frequency of stems among `turns` turns."""
        return TurnWords(self._reader).idf(stems, turns)

    def idf_of_unknown(self, turns: int) -> float:
        """Return the inverse document frequency of a stem that no turn contains."""
        return bm25_idf(turns, 0)

    def by_words(
        self, idf: Mapping[str, float], turns: int, most: int, scope: TurnScope
    ) -> list[tuple[int, float]]:
        """Return the best turns by their words as (serial, BM25)."""
        return TurnWords(self._reader).search(idf, turns, most, scope)

    def by_meaning(
        self, model: str, vector: Matrix, threshold: float, most: int, scope: TurnScope
    ) -> list[VectorHit]:
        """Return the nearest turns. `model` names the model of the vector."""
        where, values = "model=?", list[Any]((model,))
        if scope.since is not None:
            where += " AND ended>=?"
            values.append(to_microseconds(scope.since))
        if scope.projects is not None:
            marks = ",".join("?" * len(scope.projects))
            where += f" AND session IN (SELECT number FROM sessions WHERE project IN ({marks}))"  # noqa: S608
            values += sorted(scope.projects)
        rows: Any = self._reader.execute(
            f"SELECT number,places,inverse,codes FROM blocks WHERE {where}",  # noqa: S608 - our names
            values,
        )
        return nearest_turns(rows, vector, threshold, most)

    def coverage(self, idf: Mapping[str, float], serials: Sequence[int]) -> dict[int, Covered]:
        """Return how well each of these turns covers the stems of a query."""
        texts = {
            serial: LeadText.of([self.stemmer.stems(part) for part in passages_of(turn)])
            for serial, (_, turn) in self._turns_at(serials).items()
        }
        return dict(zip(texts, lead_coverage(list(texts.values()), idf), strict=True))

    def _session(self, row: Sequence[Any]) -> Session:
        _, id_, client, agent, project, title, begun, ended, turns, path, gone = row
        return Session(
            id=id_,
            client=client,
            agent=agent,
            project=project,
            title=title,
            begun=_moment(begun),
            ended=_moment(ended),
            turns=turns,
            path=path,
            gone_at=_moment(gone),
        )


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_microseconds(microseconds)
