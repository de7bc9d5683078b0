"""The session in which an agent writes a note, so that the note can name it as its source."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from attrs import define

from lithos.events.model.told_projects import TOLD_VALID
from lithos.events.reading.told_projects import ToldProjects
from lithos.kernel.log import get_logger
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import LithosError
from lithos.kernel.values.principals import ACTING
from lithos.sessions.answers.addresses import TurnAddress
from lithos.sessions.model.session import CLIENT_NAMES, Session, session_id
from lithos.sessions.service.sessions import Sessions
from lithos.sessions.settings import SessionsConfig

log = get_logger("lithos.sessions")

#: If an agent has several sessions, the one in which it writes has a turn in this time.
ACTIVE: Final = timedelta(minutes=15)
#: Maximum number of an agent's sessions that are looked up.
MOST_LOOKED_UP: Final = 20


@define(eq=False)
class Origins:
    """Finds the session of a call. The call names it, or a hook of the agent's client named it before."""

    _sessions: Sessions
    _told: ToldProjects
    _settings: SessionsConfig
    _clock: Clock

    async def of(self, agent: str) -> str | None:
        """Return the address of the session in which an agent writes now, or None if it is not certain.

        Only indexed sessions count. A person at the console or at a command writes in no session.
        """
        caller = ACTING.get()
        if not self._settings.link_notes or (caller is not None and caller.is_person):
            return None
        now = self._clock()
        try:
            if caller is not None and caller.session:
                found = await self._indexed([caller.session])
            else:
                found = _only(await self._indexed(self._of_agent(agent, now)), now)
        except LithosError as failure:
            log.warning("note written without its session", reason=failure.message)
            return None
        return TurnAddress(found[0].id, moment=now).source if found else None

    def _of_agent(self, agent: str, now: datetime) -> list[str]:
        current = [
            each.session
            for each in self._told.rows()
            if each.agent == agent and now - each.last_seen < TOLD_VALID
        ]
        return current[:MOST_LOOKED_UP]

    async def _indexed(self, natives: Iterable[str]) -> list[Session]:
        """Return the sessions with these ids of clients. Each id is of one client at most."""
        found: list[Session] = []
        for native in natives:
            for client in CLIENT_NAMES:
                part = await self._sessions.turns(session_id(client, native), 1, 0)
                if part is not None:
                    found.append(part.session)
                    break
        return found


def _only(sessions: list[Session], now: datetime) -> list[Session]:
    """Return the only session, or else the only session that has a turn now. An agent may have several."""
    if len(sessions) > 1:
        sessions = [each for each in sessions if each.ended is not None and now - each.ended < ACTIVE]
    return sessions if len(sessions) == 1 else []
