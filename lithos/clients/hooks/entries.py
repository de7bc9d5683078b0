"""The hooks of Lithos as each client's configuration spells them.

See docs/spec/integration.md §2.2. The pages with these formats are named in `dialects`. Codex trusts a hook
by the digest of its definition, so a changed command asks the person again: keep the commands stable.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

#: Event of a client to its entries: groups with a list `hooks`, or the hooks themselves.
Hooks = Mapping[str, Sequence[Mapping[str, Any]]]
#: A hook command with the matcher of its group, or None to match each value.
_Use = tuple[str | None, str]

_BRIEF: Final[_Use] = (None, "brief")
_CHECKPOINT: Final[_Use] = (None, "checkpoint")
#: Briefing at each start, and the reminder after a compaction.
_STARTS: Final[tuple[_Use, ...]] = (("startup|resume|clear|compact", "brief"), ("compact", "checkpoint"))


class HookSpelling(NamedTuple):
    """The events of a client, the keys of a hook in their order, and whether hooks are in groups."""

    events: Mapping[str, Sequence[_Use]]
    keys: Mapping[str, Any]
    is_grouped: bool


#: Timeouts are seconds, except for Gemini CLI. A hook normally ends within one second.
_TYPED: Final = {"type": "command", "command": "", "timeout": 5}
SPELLINGS: Final[Mapping[str, HookSpelling]] = {
    "claude-code": HookSpelling(
        {
            "SessionStart": _STARTS,
            "UserPromptSubmit": (_BRIEF,),
            "PreCompact": (("manual|auto", "checkpoint"),),
            "SessionEnd": (_CHECKPOINT,),
        },
        _TYPED,
        is_grouped=True,
    ),
    "codex": HookSpelling(
        {
            "SessionStart": _STARTS,
            "UserPromptSubmit": (_BRIEF,),
            "PreCompact": (_CHECKPOINT,),
            "Stop": (_CHECKPOINT,),
        },
        _TYPED,
        is_grouped=True,
    ),
    "cursor": HookSpelling(
        {
            "sessionStart": (_BRIEF,),
            "beforeSubmitPrompt": (_BRIEF,),
            "preCompact": (_CHECKPOINT,),
            "sessionEnd": (_CHECKPOINT,),
        },
        {"command": "", "timeout": 5},
        is_grouped=False,
    ),
    # A matcher of Gemini CLI is an exact text for these events, so its hooks get no matcher.
    "gemini-cli": HookSpelling(
        {
            "SessionStart": (_BRIEF,),
            "BeforeAgent": (_BRIEF,),
            "PreCompress": (_CHECKPOINT,),
            "SessionEnd": (_CHECKPOINT,),
        },
        {"name": "lithos", "type": "command", "command": "", "timeout": 5_000},
        is_grouped=True,
    ),
    # The output of a hook at the prompt is dropped, so this event would only cost time.
    "copilot-cli": HookSpelling(
        {"sessionStart": (_BRIEF,), "preCompact": (_CHECKPOINT,), "sessionEnd": (_CHECKPOINT,)},
        {"type": "command", "command": "", "timeoutSec": 5},
        is_grouped=False,
    ),
    "vscode": HookSpelling(
        {
            "SessionStart": (_BRIEF,),
            "UserPromptSubmit": (_BRIEF,),
            "PreCompact": (_CHECKPOINT,),
            "Stop": (_CHECKPOINT,),
        },
        _TYPED,
        is_grouped=False,
    ),
}


#: Text before and after the program whose existence a shell line checks.
_GUARD: Final = "[ -x "
_GUARDED: Final = " ] || exit 0; exec "


def guarded(program: Sequence[str], options: Sequence[str]) -> str:
    """Return the beginning of a shell line that starts Lithos, or does nothing if Lithos was removed."""
    return f"{_GUARD}{shlex.quote(program[0])}{_GUARDED}{shlex.join([*program, *options])}"


def hooks_for(client: str, begin: str, end: str = "", brief: str = "") -> Hooks:
    """Return the hooks of a client. Each shell line begins with `begin` and ends with `end`.

    `brief` is the end of the lines that print a briefing.
    """
    spelling = SPELLINGS[client]

    def entry(event: str, use: _Use) -> dict[str, Any]:
        matcher, command = use
        line = f"{begin} {command} --hook --client {client} --event {event}{end}"
        line += brief if command == "brief" else ""
        hook = {**spelling.keys, "command": line}
        if not spelling.is_grouped:
            return hook
        return {**({} if matcher is None else {"matcher": matcher}), "hooks": [hook]}

    return {event: [entry(event, use) for use in uses] for event, uses in spelling.events.items()}


def is_hook_of(client: str, options: Sequence[str]) -> Callable[[object], bool]:
    """Return a function that recognises the hooks that Lithos wrote for this client and this vault.

    The path of the program may differ. Hooks that a person wrote do not have this form.
    """
    words = f" {re.escape(shlex.join(options))}" if options else ""
    line = re.compile(
        rf"\S.*{words} (?:brief|checkpoint) --hook --client {client} --event \w+(?: --agent \S.*)?"
    )

    def matches(hook: object) -> bool:
        command = hook.get("command") if isinstance(hook, Mapping) else None
        if not isinstance(command, str) or len(command) > _LONGEST:
            return False
        guard, _, rest = command.partition(_GUARDED)
        return guard.startswith(_GUARD) and line.fullmatch(rest) is not None

    return matches


#: Maximum number of characters of a command that is compared.
_LONGEST: Final = 10_000
