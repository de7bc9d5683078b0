"""Transcripts for tests, and a follower that indexes them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio
from attrs import define

from lithos.kernel.actors.threads import Inline
from lithos.search.settings import SearchConfig
from lithos.sessions.capability import encode_turns
from lithos.sessions.following.follower import SessionFollower
from lithos.sessions.model.masking import SecretMask
from lithos.sessions.rows.schema import SESSIONS
from lithos.sessions.rows.store import Embedding, SessionStore
from lithos.sessions.service.searching import TurnSearch, model_name
from lithos.sessions.service.sessions import Sessions
from tests.fakes import Clock
from tests.servers import load_once

SAMPLES: Final = Path(__file__).with_name("samples")
NOW: Final = datetime(2026, 11, 29, 12, tzinfo=UTC)
#: A mask that changes nothing, and one that masks a single word.
PLAIN: Final = SecretMask(lambda text: text)
MASK: Final = SecretMask(lambda text: text.replace("hunter2", "[secret: password]"))


def prompt(text: str, session: str = "s1", cwd: str = "/srv/made-up/shop", at: str = "09:00") -> str:
    """Return a line of Claude Code with a prompt."""
    return _line("user", session, cwd, at, {"role": "user", "content": text})


def answer(text: str, session: str = "s1", key: str = "", at: str = "09:01") -> str:
    """Return a line of Claude Code with an answer."""
    content = [{"type": "text", "text": text}]
    return _line("assistant", session, "/srv/made-up/shop", at, {"id": key or text, "content": content})


def tool_output(text: str, session: str = "s1") -> str:
    """Return a line of Claude Code with the output of a tool."""
    content = [{"type": "tool_result", "tool_use_id": "t", "content": text}]
    return _line("user", session, "/srv/made-up/shop", "09:02", {"role": "user", "content": content})


def _line(kind: str, session: str, cwd: str, at: str, message: dict[str, Any]) -> str:
    record = {
        "type": kind,
        "sessionId": session,
        "cwd": cwd,
        "isSidechain": False,
        "timestamp": f"2026-11-28T{at}:00.000Z",
        "message": message,
    }
    return json.dumps(record) + "\n"


@define
class Index:
    """A running follower with its store and its service."""

    folder: Path
    store: SessionStore
    follower: SessionFollower
    sessions: Sessions
    clock: Clock

    def put(self, name: str, *lines: str) -> Path:
        """Write a transcript."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8")
        return path

    def grow(self, name: str, *lines: str) -> None:
        """Append to a transcript."""
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write("".join(lines))

    async def found(self, query: str, **more: Any) -> list[str]:
        """Return the texts of the turns that a search finds."""
        return [hit.turn.text for hit in await self.sessions.search(query, **more)]

    async def texts(self, session: int = 0) -> list[str]:
        """Return the texts of the turns of a session, the newest session first."""
        page = await self.sessions.list()
        part = await self.sessions.turns(page.sessions[session].id, span=40)
        assert part is not None
        return [turn.text for turn in part.turns]

    async def notices(self) -> str:
        """Return what could not be read of all sessions."""
        return " ".join(notice for each in (await self.sessions.list()).sessions for notice in each.notices)


def builtin_embedding() -> Embedding:
    """Return the embedding with the built-in model."""
    model = load_once("builtin")
    return Embedding(model_name(model), partial(encode_turns, model))


@asynccontextmanager
async def following(
    folder: Path,
    *,
    private: Path | None = None,
    folders: Sequence[str] | None = None,
    keep_days: int = 90,
    mask: SecretMask | None = PLAIN,
    embedding: Callable[[], Embedding] = builtin_embedding,
) -> AsyncIterator[Index]:
    """Follow the transcripts in `folder / "in"`, without threads."""
    inside, private, clock = folder / "in", private or folder / "own", Clock(NOW)
    inside.mkdir(exist_ok=True)
    store = SessionStore.open(private / SESSIONS, NOW)
    follower = SessionFollower(
        store,
        private,
        [str(inside)] if folders is None else folders,
        keep_days,
        mask,
        embedding,
        clock,
        clock,
        working=Inline(),
    )
    search = TurnSearch(SearchConfig())
    sessions = Sessions(store, follower, search, lambda: load_once("builtin"), Inline())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(follower.run)
        try:
            yield Index(inside, store, follower, sessions, clock)
        finally:
            nursery.cancel_scope.cancel()
            store.close()
