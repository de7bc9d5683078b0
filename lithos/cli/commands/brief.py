"""`lithos brief`: print what `lithos_context` of the running server tells."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import trio

from lithos.cli.commands.asking import ask_tool, require_owner
from lithos.cli.hooks.briefing import TOOL, arguments_of
from lithos.cli.output import tell
from lithos.cli.session import CommandFailed, Session
from lithos.stores.told import SessionBusy, ToldSession, sessions_folder, told_session

#: Seconds to wait for another briefing of the same session.
_SESSION_WAIT = 10.0


def run_brief(session: Session) -> int:
    """Print the briefing; 0 also when there is nothing new. Raises `CommandFailed`."""
    typed = session.typed
    if not typed.get("query") and not typed.get("task"):
        raise CommandFailed("Say what the briefing is about: a QUERY, --task ID, or both.", 2)
    with _told(session) as told:
        since = None if told is None else told.cursor
        answer = trio.run(partial(_ask, session, arguments_of(typed, since)))
        lines = str(answer["text"]).rstrip("\n").split("\n") if answer["text"] else ()
        tell(session, answer, lines)
        if told is not None and answer.get("cursor"):
            told.store(str(answer["cursor"]))
    return 0


@contextmanager
def _told(session: Session) -> Iterator[ToldSession | None]:
    """What the session was told, if one is named."""
    name = session.typed.get("session")
    if name is None:
        yield None
        return
    try:
        data = session.config.storage.data_dir
        with told_session(sessions_folder(os.environ), data, name, _SESSION_WAIT) as told:
            yield told
    except (SessionBusy, ValueError) as refusal:
        raise CommandFailed(str(refusal)) from refusal


async def _ask(session: Session, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    owner = await require_owner(session, "a briefing is made by a running one")
    return await ask_tool(owner, TOOL, arguments)
