"""Who an agent is: the same in each of its sessions (docs/spec/integration.md §2)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

#: Variables that a client sets for the programs that it starts.
_CLIENTS: Final = {
    "CLAUDECODE": "claude-code",
    "CLAUDE_PROJECT_DIR": "claude-code",
}
_UNKNOWN: Final = "lithos"
_LONGEST: Final = 200


def agent_of(typed: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """`--agent`, else `<client>@<host>`; the client is `--client`, else told by the environment."""
    agent = typed.get("agent")
    if agent:
        return str(agent)
    known = (name for variable, name in _CLIENTS.items() if environment.get(variable))
    client = typed.get("client") or next(known, _UNKNOWN)
    host = os.uname().nodename.partition(".")[0] or "localhost"
    return f"{client}@{host}"[:_LONGEST]
