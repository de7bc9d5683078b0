"""The command `lithos brief --hook`, which answers the start of a session and the prompt, or prints nothing.

See docs/spec/integration.md §2.1.

Modules are imported only when they are needed. Importing everything that other commands need would take twice
as long.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

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
from lithos.clients.hooks.owner import find_data, find_hook_owner, in_project, read_hook_owner
from lithos.clients.hooks.payload import (
    Payload,
    agent_of,
    folder_of,
    is_first_answer,
    read_payload,
    say,
)
from lithos.server.command.hook_failsafe import DEADLINE, FAILURES, deadline_after

if TYPE_CHECKING:
    from lithos.server.command.declaring import Invocation


def run_hook(invocation: Invocation) -> int:
    """Print the answer to the client's event in the form that the client reads. Always return 0."""
    from lithos.clients.files_session_cursors import SessionBusy

    with suppress(SessionBusy, *FAILURES):
        told = read_payload(invocation.typed)
        if not told.is_shown:
            say(told, "")
        elif told.dialect is None or told.kind is None:
            _brief(invocation, told)
        else:
            _answer(invocation, told)
    return 0


def _answer(invocation: Invocation, told: Payload) -> None:
    """Answer an event of a client. Raises `FAILURES` and `SessionBusy`."""
    until = deadline_after(DEADLINE)
    data, token = find_data(invocation)
    if not is_first_answer(told, "brief", data):
        return
    if told.kind == "start":
        from lithos.clients.hooks.session_start import brief_session

        brief_session(told, invocation.typed, data, token, until)
    elif told.kind == "prompt":
        from lithos.clients.hooks.prompting import run

        owner = in_project(read_hook_owner(data, token, until), told, invocation.typed)
        sender = {} if told.sender is None else {"client": told.sender}
        say(told, run(told, owner, {**invocation.typed, **sender}))
    # The end of a conversation belongs to `lithos checkpoint --hook`.


def _brief(invocation: Invocation, told: Payload) -> None:
    """Print the passages that the session does not have yet, for a person or a client of unknown form."""
    data, owner = find_hook_owner(invocation, deadline_after(DEADLINE))
    typed = dict(invocation.typed)
    if not typed.get("query") and not typed.get("task"):
        typed["query"] = concern_of(folder_of(told.cwd))
    typed |= {"budget": hook_budget(typed), "agent": agent_of(typed, os.environ, told.sender)}
    session = typed.get("session", told.session)
    if session is None:
        _print(told, checked(owner.call(TOOL, arguments_of(typed, None))), invocation)
        return
    from lithos.clients.files_session_cursors import sessions_folder, told_session

    with told_session(sessions_folder(os.environ), data, session, DEADLINE) as cursor:
        since = None if told.source in FORGOT else cursor.cursor
        answer = checked(owner.call(TOOL, arguments_of(typed, since)))
        _print(told, answer, invocation)
        if after := cursor_of(answer):
            cursor.store(after)


def _print(told: Payload, answer: Mapping[str, Any], invocation: Invocation) -> None:
    text = shown(answer)
    if text and invocation.as_json:
        text = json.dumps({"text": text, "tokens": answer["tokens"], "cursor": answer.get("cursor")})
    say(told, text)
