"""The command `lithos brief --hook`, which prints a briefing at the start of a session, or nothing.

See docs/spec/integration.md §2.

Modules are imported only when they are needed. Importing everything that other commands need would take twice
as long.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lithos.clients.hooks.owner import HookOwner, find_hook_owner
from lithos.clients.hooks.payload import agent_of, folder_of, name_of, read_payload, repository_of
from lithos.server.command.hook_failsafe import (
    DEADLINE,
    FAILURES,
    HOOK_BUDGET,
    TOKEN_BYTES,
    NoHookOutput,
    print_text,
    printable,
)

TOOL: Final = "lithos_context"
#: Parameter of the tool for each option of the command.
_PARAMETERS: Final = {"query": "query", "task": "task_id", "budget": "budget", "agent": "agent_id"}
_LONGEST_CONCERN: Final = 300


def arguments_of(typed: Mapping[str, Any], since: str | None) -> dict[str, Any]:
    """Return the arguments for the tool.

    `since` is the stored cursor, but a cursor on the command line has precedence.
    """
    arguments = {_PARAMETERS[name]: value for name, value in typed.items() if name in _PARAMETERS}
    cursor = typed.get("since", since)
    return arguments | {"cursor": True} | ({"since": cursor} if cursor is not None else {})


def text_of(answer: Mapping[str, Any]) -> str:
    """Return the text to print, followed by the list of notes that its numbers refer to, if there is one."""
    text, sources = str(answer["text"]).strip("\n"), answer.get("sources")
    if not text or not isinstance(sources, list) or not sources:
        return text
    return "\n".join((text, "", "## Sources", "", *map(str, sources)))


def concern_of(folder: Path) -> str:
    """Return a query: the names of the repository and of the folders from there to `folder`."""
    root = repository_of(folder)
    parts = (root.name, *folder.relative_to(root).parts)
    return name_of(" ".join(part for part in parts if part))[:_LONGEST_CONCERN]


if TYPE_CHECKING:
    from lithos.server.command.declaring import Invocation

#: Values of `source` after which the conversation was shortened or cleared, so the agent no longer has the
#: earlier briefing.
_FORGOT: Final = ("compact", "clear")


def run_hook(invocation: Invocation) -> int:
    """Print passages that the session has not printed yet. Always return 0."""
    from lithos.clients.files_session_cursors import SessionBusy

    with suppress(SessionBusy, *FAILURES):
        _brief(invocation)
    return 0


def _brief(invocation: Invocation) -> None:
    data, owner = find_hook_owner(invocation, time.monotonic() + DEADLINE)
    told_us = read_payload()
    typed = dict(invocation.typed)
    if not typed.get("query") and not typed.get("task"):
        typed["query"] = concern_of(folder_of(told_us.cwd))
    typed["budget"] = min(typed.get("budget", HOOK_BUDGET), HOOK_BUDGET)
    typed["agent"] = agent_of(typed, os.environ)
    session = typed.get("session", told_us.session)
    if session is None:
        _print(_ask(owner, arguments_of(typed, None)), invocation)
        return
    from lithos.clients.files_session_cursors import sessions_folder, told_session

    with told_session(sessions_folder(os.environ), data, session, DEADLINE) as told:
        since = None if told_us.source in _FORGOT else told.cursor
        answer = _ask(owner, arguments_of(typed, since))
        _print(answer, invocation)
        cursor = answer.get("cursor")
        if isinstance(cursor, str) and cursor:
            told.store(cursor)


def _ask(owner: HookOwner, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of the tool. Raises `NoHookOutput` if the answer is larger than the budget."""
    answer = owner.call(TOOL, arguments)
    if not isinstance(answer["text"], str) or not isinstance(answer["tokens"], int):
        raise NoHookOutput("the answer has an unexpected shape")
    size = max(answer["tokens"], len(answer["text"].encode("utf-8", "replace")) / TOKEN_BYTES)
    if size > HOOK_BUDGET:
        raise NoHookOutput("the answer is larger than requested")
    return answer


def _print(answer: Mapping[str, Any], invocation: Invocation) -> None:
    """Print the text and the number of changes that wait for approval. If there is neither, print nothing."""
    waiting = answer.get("pending_proposals")
    told = f"{waiting} changes are waiting for a person's approval (lithos proposals)." if waiting else ""
    indexing = printable(str(answer.get("message", ""))) if "indexing" in answer else ""
    parts = (indexing, printable(text_of(answer)), told)
    text = "\n\n".join(part for part in parts if part.strip())
    if not text.strip():
        return
    if invocation.as_json:
        text = json.dumps({"text": text, "tokens": answer["tokens"], "cursor": answer.get("cursor")})
    print_text(text)
