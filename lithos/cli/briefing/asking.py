"""What `lithos brief` asks; it loads at once, since a client waits for its hook."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lithos.cli.hooks.places import name_of, repository_of

TOOL: Final = "lithos_context"
#: Options and the parameters they are.
_PARAMETERS: Final = {"query": "query", "task": "task_id", "budget": "budget", "agent": "agent_id"}
_LONGEST_CONCERN: Final = 300


def arguments_of(typed: Mapping[str, Any], since: str | None) -> dict[str, Any]:
    """The arguments of the tool; `since` is the cursor that was remembered, and the typed one goes first."""
    arguments = {_PARAMETERS[name]: value for name, value in typed.items() if name in _PARAMETERS}
    cursor = typed.get("since", since)
    return arguments | ({"since": cursor} if cursor is not None else {})


def concern_of(folder: Path) -> str:
    """What a project is called, to ask about it: its repository, and the folders from there down to here."""
    root = repository_of(folder)
    parts = (root.name, *folder.relative_to(root).parts)
    return name_of(" ".join(part for part in parts if part))[:_LONGEST_CONCERN]
