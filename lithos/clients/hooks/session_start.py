"""The hook at the start of a session: a briefing of the project, or one line if no server is reachable."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock, Timer
from typing import Any, Final

from lithos.clients.files_session_cursors import sessions_folder, told_session
from lithos.clients.hooks.context_call import (
    FORGOT,
    TOOL,
    arguments_of,
    checked,
    concern_of,
    cursor_of,
    hook_budget,
    shown,
)
from lithos.clients.hooks.owner import HookOwner, Unreachable, in_project, wait_for_owner
from lithos.clients.hooks.payload import Payload, agent_of, folder_of, repository_of, say
from lithos.server.command.hook_failsafe import FAILURES, HOOK_BUDGET

#: Sections of the briefing. A start has no question, so it shows what is pinned, open, wrong or new.
SECTIONS: Final = ("pinned", "work", "warnings", "notes", "activity")
#: First line of a briefing. Without it, the model could not know where the text comes from.
HEAD: Final = "From Lithos, the notes and tasks that agents share here (lithos_read shows a whole note):"
#: Maximum number of tokens of that line, with the empty line after it.
_HEAD_TOKENS: Final = 30
#: Seconds to wait for a server that is starting.
PATIENCE: Final = 0.1
#: Seconds before the end of the process at which a server that has not answered gets a last, simple request,
#: and seconds for the answer to it.
_MARGIN: Final = 0.25
_LAST_CHANCE: Final = 0.12


def brief_session(
    told: Payload, typed: Mapping[str, Any], data: Path, token: str | None, until: float
) -> None:
    """Print the briefing. Raises `FAILURES`, and `SessionBusy` if another hook of the session runs."""
    try:
        owner = in_project(wait_for_owner(data, token, until, PATIENCE), told, typed)
        session = typed.get("session", told.session)
        if session is None:
            say(told, _headed(_ask(owner, told, typed, None)))
            return
        with told_session(sessions_folder(os.environ), data, session, until - time.monotonic()) as cursor:
            seen = None if told.source in FORGOT else cursor.cursor or _last_visit(owner, told, typed, data)
            answer = _ask(owner, told, typed, seen)
            say(told, _headed(answer))
            if after := cursor_of(answer):
                cursor.store(after)
                _last_visit(owner, told, typed, data, after)
    except Unreachable as failure:
        if not typed.get("quiet") and not _starts_server(told):
            say(told, _absence(failure.place))


def _headed(answer: Mapping[str, Any]) -> str:
    """Return the text to print. Its first line names the source, if the budget has space for it."""
    text = shown(answer)
    return f"{HEAD}\n\n{text}" if text and answer["tokens"] + _HEAD_TOKENS <= HOOK_BUDGET else text


def _absence(place: str) -> str:
    return f"Lithos is not reachable at {place}: memory is off in this session."


def _starts_server(told: Payload) -> bool:
    """Return whether the client is configured to start Lithos over stdio.

    Such a client starts the server and its hooks at the same moment, so the server is not ready yet.
    """
    from lithos.clients.connect.clients import CLIENTS, Surroundings
    from lithos.clients.connect.files import CannotUse, read_config
    from lithos.clients.connect.formats import CannotEdit
    from lithos.clients.connect.target import ServerLink

    client = CLIENTS[told.dialect or ""]
    folder = repository_of(folder_of(told.cwd))
    around = Surroundings(sys.platform, os.environ, Path.home(), folder)
    links: list[ServerLink | None] = []
    for path in filter(None, client.files(around).values()):
        with suppress(CannotUse, CannotEdit):
            links += map(ServerLink.of, client.format.entries(read_config(path).text).values())
    return any(link is not None and link.is_lithos and not link.is_off for link in links)


def _last_visit(
    owner: HookOwner, told: Payload, typed: Mapping[str, Any], data: Path, store: str | None = None
) -> str | None:
    """Return the cursor of the agent's last session in this project. With `store`, replace it first."""
    project = owner.project or str(repository_of(folder_of(told.cwd)))
    name = f"{agent_of(typed, os.environ, told.sender)}\0{project}"
    # No client has such a session id. The digest keeps it within the bound of an id.
    key = f"visit {sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()}"
    left = max(0.0, owner.until - time.monotonic())
    with told_session(sessions_folder(os.environ), data, key, left) as visit:
        if store is not None:
            visit.store(store)
        return visit.cursor


def _ask(owner: HookOwner, told: Payload, typed: Mapping[str, Any], since: str | None) -> Mapping[str, Any]:
    agent = agent_of(typed, os.environ, told.sender)
    asked = arguments_of({**typed, "budget": hook_budget(typed), "agent": agent}, since)
    answer = _call(owner, told, {**asked, "sections": SECTIONS})
    if answer.get("code") == "invalid_input" and "query" not in asked:
        # A server that was started before an update of Lithos knows only briefings with a question.
        answer = _call(owner, told, {**asked, "query": concern_of(folder_of(told.cwd))})
    return checked(answer)


def _call(owner: HookOwner, told: Payload, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer. If it does not come in time, print that the server is not reachable, and exit.

    A server that answers simple requests is only slow. Nothing is printed about it.
    """
    speaking = Lock()

    def give_up() -> None:
        with suppress(*FAILURES):
            owner._replace(until=time.monotonic() + _LAST_CHANCE).check_health()
            return
        if speaking.acquire(blocking=False):
            try:
                say(told, _absence(owner.url))
            finally:
                os._exit(0)

    timer = Timer(max(0.0, owner.until - _MARGIN - time.monotonic()), give_up)
    timer.daemon = True
    timer.start()
    try:
        return owner.call(TOOL, arguments)
    finally:
        timer.cancel()
        speaking.acquire()  # If the timer already prints, this thread must not print as well.
