"""Arguments that clients add to calls on their own. Tools ignore them.

The names come from public bug reports. n8n passes the whole item of its workflow (n8n #21500, #21716). Cursor
passes a text to tools without parameters. Others pass their own ids, a reason for the person, or protocol
members that belong outside the arguments. A name that could be a misspelt parameter is not listed, so the
call is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

#: Lower-case names without `_` and `-`.
_ADDED: Final = frozenset({
    "toolcallid", "tooluseid", "toolname", "callid", "requestid", "messageid", "sessionid", "mcpsessionid",
    "conversationid", "threadid", "traceid", "correlationid", "progresstoken", "signal", "abortsignal",
    "chatinput", "randomstring", "waitforprevious", "waitforprevioustools", "toolaction", "toolsummary",
    "securityrisk",
})  # fmt: skip
#: Names that mark a workflow item, and the item's other members, which are too common to be ignored without
#: such a name.
_ITEM: Final = frozenset({"toolcallid", "sessionid", "chatinput"})
_MEMBERS: Final = frozenset({"action", "tool"})


def is_added(name: str, given: Collection[str], known: Collection[str]) -> bool:
    """Return whether an unknown argument `name` was added by the client on its own.

    `given` are the argument names of the call, `known` the argument names of the tool. A misspelling of a
    known name, such as `requestId`, is refused, because the agent meant the parameter.
    """
    if name.startswith("_") and not name.startswith("__"):
        return True  # such as `_meta`: no parameter begins with an underscore
    folded = _fold(name)
    if folded in _ADDED:
        return folded not in map(_fold, known)
    return folded in _MEMBERS and any(_fold(each) in _ITEM for each in given)


def _fold(name: str) -> str:
    return name[:50].replace("_", "").replace("-", "").lower()
