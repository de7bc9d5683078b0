"""Arguments that clients add to a call of their own accord; tools ignore them.

They come from public reports: n8n passes the whole item of its workflow (n8n #21500, #21716), Cursor a text
for tools without parameters, and others their own ids, a reason for the person, or members of the protocol
that belong outside of the arguments. A name that could be a misspelt parameter is not here: it is refused.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

#: Without `_` and `-`, in small letters.
_ADDED: Final = frozenset({
    "toolcallid", "tooluseid", "toolname", "callid", "requestid", "messageid", "sessionid", "mcpsessionid",
    "conversationid", "threadid", "traceid", "correlationid", "progresstoken", "signal", "abortsignal",
    "chatinput", "randomstring", "waitforprevious", "waitforprevioustools", "toolaction", "toolsummary",
    "securityrisk",
})  # fmt: skip
#: Of a workflow's item, which has one of these: its other members, whose names alone would say nothing.
_ITEM: Final = frozenset({"toolcallid", "sessionid", "chatinput"})
_MEMBERS: Final = frozenset({"action", "tool"})


def is_added(name: str, given: Collection[str], known: Collection[str]) -> bool:
    """Whether an argument that no tool knows by this `name` is the client's own.

    `given` are the names of all arguments of the call, `known` those of the tool. A name that is one of
    `known` but for its spelling, such as `requestId`, is refused: it was meant.
    """
    if name.startswith("_") and not name.startswith("__"):
        return True  # `_meta`; no parameter begins so
    folded = _fold(name)
    if folded in _ADDED:
        return folded not in map(_fold, known)
    return folded in _MEMBERS and any(_fold(each) in _ITEM for each in given)


def _fold(name: str) -> str:
    return name[:50].replace("_", "").replace("-", "").lower()
