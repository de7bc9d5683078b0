"""The implementation of `PastSessions`: tools search and read sessions next to the notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from attrs import evolve

from lithos.kernel.log import get_logger
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import DocNotFound, InvalidInput, LithosError
from lithos.kernel.values.principals import ACTING
from lithos.kernel.values.projects import ProjectFilter
from lithos.notes.model.earlier_turns import EarlierTurn
from lithos.notes.model.scopes import WriteScopes
from lithos.sessions.answers.addresses import TurnAddress, read_address
from lithos.sessions.answers.answering import address_of, hit_row, part_row
from lithos.sessions.answers.origins import Origins
from lithos.sessions.model.results import (
    MOST_HITS,
    MOST_SHOWN,
    SPAN,
    Reach,
    SessionHit,
    SessionPart,
    everything,
)
from lithos.sessions.model.session import CLIENT_NAMES, session_id
from lithos.sessions.service.sessions import Sessions, reach_of
from lithos.text.snippet import truncate

log = get_logger("lithos.sessions")

#: Number of turns before and after the middle of the longest excerpt.
_SPAN: Final = (MOST_SHOWN - 1) // 2
#: Number of hits that a briefing considers. Only these can be strong.
BRIEFED: Final = 3
#: A session with a turn in this time is still running: it is not an earlier session. It may be the session in
#: which the question is asked, which would always match best.
RUNNING: Final = timedelta(minutes=15)


class SessionAnswers:
    """Sessions in the answers of tools. Callers see only sessions within their reach."""

    def __init__(self, sessions: Sessions, scopes: WriteScopes, origins: Origins, clock: Clock) -> None:
        self._sessions = sessions
        self._scopes = scopes
        self._origins = origins
        self._clock = clock

    @property
    def is_enabled(self) -> bool:
        """Return whether transcripts are added, or sessions are stored."""
        return self._sessions.is_available

    def reach(self, agent: str | None) -> Reach:
        """Return which projects' sessions the current caller may see."""
        return reach_of(self._scopes, ACTING.get(), agent or "")

    async def search_rows(
        self, query: str, project: ProjectFilter | None, offset: int, limit: int, agent: str | None
    ) -> list[dict[str, Any]]:
        """Return the rows of the turns that match, best first."""
        most = min(MOST_HITS, max(0, offset) + max(1, limit))
        if offset >= most:
            return []
        hits = await self._sessions.search(query, project, most, reach=self.reach(agent))
        return [hit_row(hit) for hit in hits[max(0, offset) :]]

    async def read_row(
        self, given: str, turn: int | None, offset: int, max_length: int | None, agent: str | None
    ) -> Mapping[str, Any]:
        """Return the answer to a read of a session. Raises `DocNotFound` and `InvalidInput`."""
        truncate("", max_length)  # reject an invalid length before the session is read
        address = await self.address(given, turn, agent)
        if address.turn is None:
            part = await self._part(address.session, None, SPAN, self.reach(agent))
        else:
            part = await self.part_around(address, agent)
        return part_row(part, address.turn, offset, max_length)

    async def address(self, given: str, turn: int | None = None, agent: str | None = None) -> TurnAddress:
        """Return the address by id and number of a session within reach, and perhaps of a turn.

        The given address may have the client's own id of the session, and a time. `turn` has priority over
        the turn in the address. Raises `DocNotFound` and `InvalidInput`.
        """
        address, reach = read_address(given), self.reach(agent)
        wanted = address.turn if turn is None else turn
        if wanted is not None and wanted < 1:
            raise InvalidInput(f"turn must be at least 1, not {wanted}. Turns are numbered from 1.")
        known = await self.find(address, reach)
        if known is None:
            raise DocNotFound(_unknown(given))
        return known if turn is None else TurnAddress(known.session, turn)

    async def find(self, address: TurnAddress, reach: Reach) -> TurnAddress | None:
        """Return an address by id and number, or None if no such session is within reach."""
        for id in (address.session, *(session_id(client, address.session) for client in CLIENT_NAMES)):
            if await self._sessions.turns(id, 1, 0, reach=reach) is not None:
                if address.turn is None and address.moment is not None:
                    return TurnAddress(id, await self._sessions.turn_at(id, address.moment, reach=reach))
                return TurnAddress(id, address.turn)
        return None

    async def has(self, given: str) -> bool:
        """Return whether a session has this id or address. The reach of the caller does not matter."""
        try:
            return await self.find(read_address(given), everything) is not None
        except LithosError:
            return False

    async def part(self, session: str, skipped: int, agent: str | None = None) -> SessionPart:
        """Return turns of a session without the first `skipped` ones, at most 99. Raises `DocNotFound`."""
        first = max(0, skipped) + 1
        part = await self._part(session, first + _SPAN, _SPAN, self.reach(agent))
        # Beyond the end, the service returns the last turns.
        return evolve(part, turns=[turn for turn in part.turns if turn.number >= first])

    async def part_around(self, address: TurnAddress, agent: str | None = None) -> SessionPart:
        """Return a turn with its neighbours. Raises `DocNotFound` if the session has no such turn."""
        part = await self._part(address.session, address.turn, SPAN, self.reach(agent))
        if address.turn is not None and address.turn > part.total:
            raise DocNotFound(
                f"Session {address.session} has {part.total:,} turns, so it has no turn {address.turn}."
            )
        return part

    async def _part(self, session: str, around: int | None, span: int, reach: Reach) -> SessionPart:
        part = await self._sessions.turns(session, around, span, reach=reach)
        if part is None:
            raise DocNotFound(_unknown(session))
        return part

    async def earlier(
        self, query: str, project: ProjectFilter | None, agent: str | None
    ) -> Sequence[EarlierTurn]:
        """Return the strong matches for a briefing, best first. Sessions that still run are left out."""
        if not self.is_enabled or not query.strip():
            return ()
        try:
            hits = await self._sessions.search(query, project, BRIEFED, reach=self.reach(agent))
        except LithosError as failure:
            log.warning("sessions left out of a briefing", reason=failure.message)
            return ()
        return [_earlier(hit) for hit in hits if hit.strength == "strong" and not self._is_running(hit)]

    def _is_running(self, hit: SessionHit) -> bool:
        ended = hit.session.ended
        return ended is not None and self._clock() - ended < RUNNING

    async def origin(self, agent: str) -> str | None:
        """Return the source of a note that an agent writes now: the session in which it works, if known."""
        return await self._origins.of(agent) if self.is_enabled else None


def _earlier(hit: SessionHit) -> EarlierTurn:
    return EarlierTurn(
        address=address_of(hit),
        title=hit.session.title,
        client=hit.session.client,
        project=hit.session.project or "",
        when=hit.turn.when or hit.session.ended,
        text=hit.snippet,
    )


def _unknown(given: str) -> str:
    return (
        f"Unknown session {given[:80]}. It may be older than sessions.keep_days, or of a project that you "
        "may not see. To find sessions, call lithos_search with kinds=['session']."
    )
