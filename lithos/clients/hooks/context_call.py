"""The call of `lithos_context` for a briefing, and the text to print for its answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lithos.clients.hooks.payload import name_of, repository_of
from lithos.server.command.hook_failsafe import HOOK_BUDGET, TOKEN_BYTES, NoHookOutput, printable

TOOL: Final = "lithos_context"
#: Parameter of the tool for each option of the command.
_PARAMETERS: Final = {"query": "query", "task": "task_id", "budget": "budget", "agent": "agent_id"}
_LONGEST_CONCERN: Final = 300
#: Values of `source` after which the conversation was shortened or cleared, so the agent no longer has the
#: earlier briefing.
FORGOT: Final = ("compact", "clear")


def concern_of(folder: Path) -> str:
    """Return a query: the names of the repository and of the folders from there to `folder`."""
    root = repository_of(folder)
    parts = (root.name, *folder.relative_to(root).parts)
    return name_of(" ".join(part for part in parts if part))[:_LONGEST_CONCERN]


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


def checked(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer of the tool. Raises `NoHookOutput` if the answer is larger than the budget."""
    if not isinstance(answer["text"], str) or not isinstance(answer["tokens"], int):
        raise NoHookOutput("the answer has an unexpected shape")
    size = max(answer["tokens"], len(answer["text"].encode("utf-8", "replace")) / TOKEN_BYTES)
    if size > HOOK_BUDGET:
        raise NoHookOutput("the answer is larger than requested")
    return answer


def shown(answer: Mapping[str, Any]) -> str:
    """Return the text, and the number of changes that wait for approval. If there is neither, return ""."""
    waiting = answer.get("pending_proposals")
    told = f"{waiting} changes are waiting for a person's approval (lithos proposals)." if waiting else ""
    indexing = printable(str(answer.get("message", ""))) if "indexing" in answer else ""
    parts = (indexing, printable(text_of(answer)), told)
    text = "\n\n".join(part for part in parts if part.strip())
    return text if text.strip() else ""


def hook_budget(typed: Mapping[str, Any]) -> int:
    """Return the budget of a hook, which `--budget` can only make smaller."""
    return min(int(typed.get("budget", HOOK_BUDGET)), HOOK_BUDGET)


def cursor_of(answer: Mapping[str, Any]) -> str | None:
    """Return the cursor to store, or None for an answer without a cursor."""
    cursor = answer.get("cursor")
    return cursor if isinstance(cursor, str) and cursor else None
