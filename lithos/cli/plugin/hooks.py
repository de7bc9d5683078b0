"""The hooks of the plugin (`hooks/hooks.json`), as Claude Code runs them: a shell line each.

Plain stdout of `SessionStart` becomes context. `PreCompact` may add to the instructions of the summary, so
what must be stored is said there, and to the agent at the `SessionStart` that follows a compaction.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Final

#: Seconds after which the client gives up; a hook itself is gone within one.
_TIMEOUT: Final = 5
CLIENT: Final = "claude-code"


def make_hooks(program: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    """Hooks that start `program` with the global `options` of Lithos; silent where the program has gone."""
    words = shlex.join([*program, *options])
    return _hooks(f"[ -x {shlex.quote(program[0])} ] || exit 0; exec {words}")


def make_portable_hooks() -> dict[str, Any]:
    """Hooks for whoever installs the plugin: `lithos` where it is installed, and silence where it is not.

    `uvx` would do without installing, but takes longer than a hook may.
    """
    return _hooks(
        'command -v lithos >/dev/null 2>&1 || exit 0; exec lithos -d "${LITHOS_DATA_DIR:-$HOME/Lithos}"'
    )


def _hooks(begin: str) -> dict[str, Any]:
    brief = _command(f"{begin} brief --hook --client {CLIENT}")
    checkpoint = _command(f"{begin} checkpoint --hook --client {CLIENT}")
    return {
        "description": "Lithos: a briefing when a session starts, a reminder before its context goes.",
        "hooks": {
            "SessionStart": [
                {"matcher": "startup|resume|clear|compact", "hooks": [brief]},
                {"matcher": "compact", "hooks": [checkpoint]},
            ],
            "PreCompact": [{"matcher": "manual|auto", "hooks": [checkpoint]}],
            "SessionEnd": [{"hooks": [checkpoint]}],
        },
    }


def _command(line: str) -> dict[str, Any]:
    return {"type": "command", "command": line, "timeout": _TIMEOUT}
