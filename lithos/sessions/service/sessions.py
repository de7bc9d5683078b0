"""The service `Sessions`, through which tools, commands and pages use the sessions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import Final, Protocol, TypeVar

from attrs import define, evolve, field

from lithos.kernel.actors.threads import Blocking, Threads
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.values.errors import IndexFailed, InvalidInput
from lithos.kernel.values.principals import Principal
from lithos.kernel.values.projects import ProjectFilter
from lithos.notes.model.scopes import WriteScopes
from lithos.search.embedding.embedder import Embedder
from lithos.search.service.hybrid import LONGEST_QUERY
from lithos.sessions.model.results import (
    MOST_HITS,
    MOST_ROWS,
    MOST_SHOWN,
    SPAN,
    Reach,
    SessionHit,
    SessionPage,
    SessionPart,
    SessionsStatus,
    everything,
)
from lithos.sessions.model.session import Session
from lithos.sessions.rows.reading import SessionFilter, SessionReading
from lithos.sessions.rows.words import TurnScope
from lithos.sessions.service.searching import TurnQuery, TurnSearch

T = TypeVar("T")

#: Number of turns that are unpacked at once when the turn at a time is searched from the end.
LOOKED_AT: Final = 100


class TranscriptKeeper(Protocol):
    """The actor that keeps the index up to date."""

    async def forget(self, session: str) -> bool:
        """Delete a session from the index, and return whether it existed."""

    def status(self) -> SessionsStatus:
        """Return the state of the index."""

    def notices(self, path: str) -> tuple[str, ...]:
        """Return in sentences what could not be read of a transcript."""


def reach_of(scopes: WriteScopes, by: Principal | None, agent: str) -> Reach:
    """Return which projects' sessions a caller may see (docs/spec/sessions.md §5).

    A caller without a scope sees all sessions. A caller with a scope sees the sessions of a project if the
    project is not foreign to the caller (docs/spec/scopes.md §1), and no sessions without a project.
    """
    if scopes.scope_of(by, agent) is None:
        return everything
    return lambda project: project is not None and scopes.keeps_out_of(project, by, agent) is None


@define(eq=False)
class Sessions:
    """Searches, reads, lists and forgets sessions.

    Every method that returns texts takes the `reach` of the caller (`reach_of`). Sessions beyond the reach
    are treated as if they did not exist. All texts are masked. The methods that read raise `IndexFailed` if
    the database cannot be read.
    """

    _store: SessionReading
    _keeper: TranscriptKeeper
    _search: TurnSearch
    #: Returns the static model, or None while it is loading or cannot be loaded.
    _embedder: Callable[[], Embedder | None] = lambda: None
    _reading: Blocking = field(factory=Threads)

    async def search(
        self,
        query: str,
        project: ProjectFilter | None = None,
        limit: int = 10,
        since: datetime | None = None,
        *,
        reach: Reach = everything,
    ) -> list[SessionHit]:
        """Return the turns that best answer a query, best first, at most `limit` (1 to 100).

        Words and meaning are searched. `project` filters sessions (`asked_project`), and `since` is the
        earliest time of a turn. Raises `InvalidInput`, `IndexFailed` and `SearchBackendFailed`.
        """
        if not 1 <= limit <= MOST_HITS:
            raise InvalidInput(f"limit must be from 1 to {MOST_HITS}, not {limit}. Give a smaller number.")
        if not query.strip():
            raise InvalidInput("The query is empty. Give words or a question.")
        embedder = self._embedder()

        def find() -> list[SessionHit]:
            if not self._store.is_there:
                return []
            scope = TurnScope(self._visible(project, reach), since)
            wanted = TurnQuery(query=query[:LONGEST_QUERY], limit=limit, scope=scope)
            return self._search.search(self._store, embedder, wanted)

        hits = await self._read(find)
        return [evolve(hit, session=self._with_notices(hit.session)) for hit in hits]

    async def turns(
        self, id: str, around: int | None = None, span: int = SPAN, *, reach: Reach = everything
    ) -> SessionPart | None:
        """Return turns of a session: `around` with `span` neighbours on each side, or the first turns.

        Without `around`, the first `2 * span + 1` turns are returned. At most 100 turns are returned. Return
        None if the session is unknown or beyond the reach.
        """
        span = max(0, min(span, (MOST_SHOWN - 1) // 2))

        def find() -> SessionPart | None:
            known = self._store.find(id)
            if known is None or not reach(known[2].project):
                return None
            number, _, session = known
            middle = 1 + span if around is None else max(1, min(around, session.turns))
            turns = self._store.turns(number, middle - span, middle + span)
            return SessionPart(session=session, turns=turns, total=session.turns)

        part = await self._read(find)
        if part is None:
            return None
        return evolve(part, session=self._with_notices(part.session))

    async def turn_at(self, id: str, moment: datetime, *, reach: Reach = everything) -> int | None:
        """Return the number of the last turn that began before a time, or None without such a turn."""

        def find() -> int | None:
            known = self._store.find(id)
            if known is None or not reach(known[2].project):
                return None
            for last in range(known[2].turns, 0, -LOOKED_AT):
                for turn in reversed(self._store.turns(known[0], last - LOOKED_AT + 1, last)):
                    if turn.when is not None and turn.when <= moment:
                        return turn.number
            return None

        return await self._read(find)

    async def list(
        self,
        project: ProjectFilter | None = None,
        day: date | None = None,
        agent: str | None = None,
        client: str | None = None,
        limit: int = 50,
        offset: int = 0,
        *,
        reach: Reach = everything,
    ) -> SessionPage:
        """Return the sessions that match, the newest first, and their number. `day` is a day in UTC."""
        limit = max(0, min(limit, MOST_ROWS))

        def find() -> SessionPage:
            among = SessionFilter(
                projects=self._visible(project, reach),
                day=None if day is None else datetime.combine(day, time(), UTC),
                agent=agent,
                client=client,
            )
            return SessionPage(
                sessions=self._store.page(among, limit, max(0, offset)), total=self._store.count(among)
            )

        page = await self._read(find)
        return evolve(page, sessions=tuple(map(self._with_notices, page.sessions)))

    async def forget(self, id: str) -> bool:
        """Delete a session from the index, and never index its transcript again. The transcript stays.

        Return whether the session existed. For people only, because an agent's reach is not checked.
        """
        return await self._keeper.forget(id)

    def status(self) -> SessionsStatus:
        """Return the state of the index. Does not block."""
        return self._keeper.status()

    @property
    def is_available(self) -> bool:
        """Return whether transcripts are added, or sessions are stored."""
        return self._keeper.status().is_enabled or self._store.is_there

    def _with_notices(self, session: Session) -> Session:
        return evolve(session, notices=self._keeper.notices(session.path))

    def _visible(self, project: ProjectFilter | None, reach: Reach) -> frozenset[int] | None:
        """Return the numbers of the projects that the caller may see and asks for. None means all."""
        if project is None and reach is everything:
            return None
        return frozenset(
            number
            for number, key in self._store.projects().items()
            if reach(key) and (project is None or project.passes(() if key is None else (key,)))
        )

    async def _read(self, call: Callable[[], T]) -> T:
        try:
            return await self._reading.run(call)
        except DatabaseFailed as failure:
            raise IndexFailed(f"The sessions cannot be read: {failure}. Run lithos doctor.") from failure
