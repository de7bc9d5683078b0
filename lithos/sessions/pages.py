"""`/console/sessions`: past sessions by project, day, agent and client, and a session as a conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote

from attrs import evolve, frozen
from quart import Blueprint, Response

from lithos.kernel.actors.threads import slices
from lithos.kernel.values.errors import InvalidInput, LithosError
from lithos.kernel.values.projects import ProjectFilter, asked_project
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.model.scopes import WriteScopes
from lithos.notes.service.knowledge import ReadNote
from lithos.server.console.console import Console, Form, PageRefused, given, given_offset
from lithos.server.console.formats import whole
from lithos.sessions.answers.addresses import SCHEME, TurnAddress, read_address
from lithos.sessions.answers.past import SessionAnswers
from lithos.sessions.model.results import MOST_HITS, SPAN, Reach, SessionHit
from lithos.sessions.model.session import CLIENT_NAMES, Session
from lithos.sessions.service.sessions import Sessions, reach_of

#: Number of sessions and of hits on a page, and of turns on a page of a session.
SHOWN: Final = 50
HITS: Final = 20
TURNS: Final = 40
#: Maximum number of characters of one turn, which is reduced if the page becomes too large.
LONGEST: Final = (64_000, 8_000, 1_500)
#: Maximum number of notes that are listed next to a session.
MOST_NOTES: Final = 20
GONE: Final = "The session is not in the index any more."
#: A masked secret, as the mask writes it.
_MASKED: Final = re.compile(r"(\[secret: [^\]\n]{1,60}\])")


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the routes of the list of sessions, a session's page and its removal, and the note panel."""
    pages = SessionPages(console)
    console.add_panel("note", pages.origin)
    console.environment.filters["unmasked"] = unmasked
    app.get("/sessions", endpoint="sessions")(pages.listed)
    app.get("/sessions/<name>", endpoint="one session")(pages.alone)
    console.asking(app, "/sessions/<name>/remove", pages.ask_removal, pages.remove, needs="admin")


def unmasked(text: str) -> list[tuple[bool, str]]:
    """Return the parts of a text. The first value of a part says whether it replaces a secret."""
    return [(bool(number % 2), part) for number, part in enumerate(_MASKED.split(text)) if part]


@frozen
class SessionPages:
    """The console pages for past sessions. A person sees the sessions within reach of the login."""

    _console: Console

    @property
    def _sessions(self) -> Sessions:
        return self._console.parts.get(Sessions)

    def _reach(self) -> Reach:
        person = evolve(self._console.principal, is_person=True)
        return reach_of(self._console.parts.get(WriteScopes), person, self._console.agent)

    async def listed(self) -> Response:
        """Show the sessions, the newest first and by day, or the turns that match a question."""
        wanted = {name: given(name, 300) for name in ("q", "project", "day", "client", "agent")}
        project = asked_project(wanted["project"]) if wanted["project"] else None
        if wanted["q"]:
            return await self._show(wanted, hits=await self._found(wanted, project))
        asked = partial(
            self._sessions.list,
            project,
            _day_of(wanted["day"]),
            wanted["agent"] or None,
            wanted["client"] or None,
            reach=self._reach(),
        )
        offset = given_offset((await asked(limit=0)).total)
        page = await asked(limit=SHOWN, offset=offset)
        return await self._show(
            wanted, days=list(_by_day(page.sessions)), total=page.total, limit=SHOWN, offset=offset
        )

    async def _found(self, wanted: Mapping[str, str], project: ProjectFilter | None) -> list[SessionHit]:
        """Return the best turns. Day, client and agent choose among the best turns of all."""
        day = _day_of(wanted["day"])
        hits = await self._sessions.search(wanted["q"], project, MOST_HITS, reach=self._reach())
        return [
            hit
            for hit in hits
            if (day is None or (hit.turn.when is not None and hit.turn.when.date() == day))
            and wanted["client"] in ("", hit.session.client)
            and wanted["agent"] in ("", hit.session.agent)
        ][:HITS]

    async def _show(self, wanted: Mapping[str, str], **found: Any) -> Response:
        return await self._console.show(
            "sessions.html",
            path="/console/notes",
            wanted=wanted,
            clients=CLIENT_NAMES,
            is_on=self._sessions.is_available,
            state=self._sessions.status(),
            **{"hits": None, "days": [], "total": 0, "limit": SHOWN, "offset": 0} | found,
        )

    async def alone(self, name: str) -> Response:
        """Show a session as a conversation, from its beginning or around a turn."""
        address = await self._address(name)
        wanted = whole(given("turn")) or address.turn
        is_single = given("view") == "turn" and wanted is not None
        first = max(1, wanted or 1) if is_single else _first_of(wanted, whole(given("first")))
        part = await self._sessions.turns(
            address.session,
            first + (0 if is_single else TURNS // 2),
            0 if is_single else TURNS // 2,
            reach=self._reach(),
        )
        if part is None:
            raise PageRefused(GONE, 404)
        return await self._console.show_within(
            "session.html",
            "most",
            (LONGEST[0],) if is_single else LONGEST,
            path="/console/notes",
            session=part.session,
            turns=part.turns,
            total=part.total,
            here=wanted,
            is_single=is_single,
            per_page=TURNS,
            notes=await self._notes_of(part.session.id),
            address=_page_of(address.session),
        )

    async def _address(self, name: str) -> TurnAddress:
        try:
            given_address = read_address(name[:200])
            known = await self._console.parts.get(SessionAnswers).find(given_address, self._reach())
        except LithosError as refusal:
            raise PageRefused(refusal.message, 404, refusal.code) from refusal
        if known is None:
            raise PageRefused(
                "The session is not in the index, or you may not see its project. It may be older than "
                "sessions.keep_days.",
                404,
            )
        return known

    async def _notes_of(self, session: str) -> Sequence[Entry]:
        """Return the notes that name this session as their source, oldest first."""
        begin, found = f"{SCHEME}{session}", list[Entry]()
        async for some in slices(list(self._console.parts.get(Catalogue))):
            found += [each for each in some if (each.note.source or "").startswith(begin)]
        return sorted(found, key=lambda each: each.note.created_at)[:MOST_NOTES]

    async def origin(self, read: ReadNote) -> Mapping[str, Any]:
        """Return the session and the turn in which a note was written, for its page."""
        source = read.entry.note.source or ""
        if not source.startswith(SCHEME):
            return {}
        try:
            known = await self._console.parts.get(SessionAnswers).find(read_address(source), self._reach())
        except LithosError:  # The source is still shown as it is in the frontmatter.
            return {}
        if known is None:
            return {}
        part = await self._sessions.turns(known.session, known.turn or 1, 0, reach=self._reach())
        if part is None:
            return {}
        turn = "" if known.turn is None else f"?turn={known.turn}#turn-{known.turn}"
        return {
            "origin": {
                "title": part.session.title,
                "turn": known.turn,
                "href": _page_of(known.session) + turn,
            }
        }

    async def ask_removal(self, name: str) -> Response:
        """Ask whether a session is to leave the index."""
        address = await self._address(name)
        part = await self._sessions.turns(address.session, 1, 0, reach=self._reach())
        if part is None:
            raise PageRefused(GONE, 404)
        return await self._console.show(
            "session_remove.html",
            path="/console/notes",
            session=part.session,
            address=_page_of(address.session),
        )

    async def remove(self, form: Form, name: str) -> str:
        """Remove a session from the index. Its transcript stays."""
        address = await self._address(name)
        await self._console.call("lithos_session_forget", id=address.session)
        self._console.tell("The session was removed from the index. Its transcript was not changed.")
        return "/console/sessions"


def _page_of(session: str) -> str:
    return f"/console/sessions/{quote(session, safe='')}"


def _first_of(wanted: int | None, first: int | None) -> int:
    """Return the first turn of a page: the one that is asked for, or the neighbours of a turn."""
    if first is not None:
        return max(1, first)
    return 1 if wanted is None else max(1, wanted - SPAN)


def _day_of(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidInput(f"{text[:40]!r} is not a day. Give a day such as 2026-11-29.") from None


def _by_day(sessions: Sequence[Session]) -> Iterator[tuple[date | None, list[Session]]]:
    """Yield the sessions of each day (UTC) on which they ended."""
    for day, some in groupby(sessions, key=lambda each: each.ended and each.ended.date()):
        yield day, list(some)
