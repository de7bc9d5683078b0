"""Arguments that clients add to calls on their own. The tools ignore them.

The names come from public bug reports. n8n passes the whole item of its workflow (n8n #21500, #21716). Cursor
passes a text to tools without parameters. Other clients pass their own ids, a reason for the user, or
protocol members that do not belong in the arguments. The list contains no names that could be a misspelt
parameter. A call with such a name is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

#: Names in lower case, without `_` and `-`.
_ADDED: Final = frozenset({
    "toolcallid", "tooluseid", "toolname", "callid", "requestid", "messageid", "sessionid", "mcpsessionid",
    "conversationid", "threadid", "traceid", "correlationid", "progresstoken", "signal", "abortsignal",
    "chatinput", "randomstring", "waitforprevious", "waitforprevioustools", "toolaction", "toolsummary",
    "securityrisk",
})  # fmt: skip
#: Names that identify a workflow item, and the other members of the item. The other members are ignored only
#: together with such a name, because they are common words.
_ITEM: Final = frozenset({"toolcallid", "sessionid", "chatinput"})
_MEMBERS: Final = frozenset({"action", "tool"})


def is_added(name: str, given: Collection[str], known: Collection[str]) -> bool:
    """Return whether the client has added the unknown argument `name` on its own.

    `given` contains the argument names of the call, and `known` contains those of the tool. A misspelling of
    a known name, such as `requestId`, is refused, because the agent meant the parameter.
    """
    if name.startswith("_") and not name.startswith("__"):
        return True  # the name is like `_meta`, and no parameter begins with an underscore
    folded = _fold(name)
    if folded in _ADDED:
        return folded not in map(_fold, known)
    return folded in _MEMBERS and any(_fold(each) in _ITEM for each in given)


def _fold(name: str) -> str:
    return name[:50].replace("_", "").replace("-", "").lower()
