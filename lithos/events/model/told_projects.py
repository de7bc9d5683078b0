"""The projects in which hooks say that agents work (docs/spec/projects.md §2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from attrs import frozen

#: Maximum number of sessions that are remembered, and the time after which a session is forgotten.
MOST_TOLD: Final = 500
TOLD_KEPT: Final = timedelta(days=30)
#: Time for which a session determines the project of its agent's other calls.
TOLD_VALID: Final = timedelta(hours=12)
#: Time after which a session that names the same project again is stored again.
_AGAIN: Final = timedelta(minutes=1)


@frozen
class ToldProject:
    """The project in which an agent works in one client session, with the time of the last call."""

    session: str
    agent: str
    project: str
    last_seen: datetime


class ToldSessions:
    """The newest `MOST_TOLD` sessions in memory, by agent. Some of them may not be stored yet."""

    def __init__(self, stored: Iterable[ToldProject] = ()) -> None:
        #: All sessions by agent and session id, the one that was seen last at the end.
        self._all: dict[tuple[str, str], ToldProject] = {}
        self._of: dict[str, dict[str, ToldProject]] = {}
        self._unsaved: set[tuple[str, str]] = set()
        for each in sorted(stored, key=lambda each: each.last_seen):
            self._put(each)

    @property
    def agents(self) -> Collection[str]:
        """A view of the agents of all sessions."""
        return self._of.keys()

    def rows(self) -> list[ToldProject]:
        """Return all sessions, the one that was seen last first."""
        return [*self._all.values()][::-1]

    def tell(self, told: ToldProject) -> None:
        """Remember the project of a session. It replaces an earlier project of the same session."""
        known = self._of.get(told.agent, {}).get(told.session)
        if known is None or known.project != told.project or told.last_seen - known.last_seen >= _AGAIN:
            self._put(told)
            self._unsaved.add((told.agent, told.session))

    def project_of(self, agent: str, now: datetime) -> str | None:
        """Return the project on which all current sessions of the agent agree, or None."""
        projects = {
            each.project.casefold(): each.project
            for each in self._of.get(agent, {}).values()
            if now - each.last_seen < TOLD_VALID
        }
        return next(iter(projects.values())) if len(projects) == 1 else None

    @property
    def has_unsaved(self) -> bool:
        """True if some sessions must be stored."""
        return bool(self._unsaved)

    def take_unsaved(self) -> list[ToldProject]:
        """Return the sessions to store. If they cannot be stored, call `put_back`."""
        keys, self._unsaved = self._unsaved, set()
        return [self._all[key] for key in keys if key in self._all]

    def put_back(self, rows: Iterable[ToldProject]) -> None:
        """Mark sessions as unsaved again."""
        self._unsaved.update((each.agent, each.session) for each in rows)

    def forget(self, before: datetime) -> None:
        """Forget the sessions that were last seen before a time."""
        for key in [key for key, each in self._all.items() if each.last_seen < before]:
            self._drop(key)

    def _put(self, told: ToldProject) -> None:
        key = told.agent, told.session
        self._all.pop(key, None)
        self._all[key] = told
        self._of.setdefault(told.agent, {})[told.session] = told
        if len(self._all) > MOST_TOLD:
            self._drop(next(iter(self._all)))

    def _drop(self, key: tuple[str, str]) -> None:
        agent, session = key
        del self._all[key], self._of[agent][session]
        if not self._of[agent]:
            del self._of[agent]
        self._unsaved.discard(key)
