"""Calls with a `request_id`: a retry gets the answer of the first one (docs/spec/tools.md §1.6).

A call is entered before it changes anything, and its answer afterwards. For a call without an answer it is
unknown whether it took effect; objects that it creates get an id derived from the call, so they are created
once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from attrs import frozen

from lithos.kernel.values.messages import BoardCommand
from lithos.kernel.values.times import format_time

#: How long a call is known, and how many are: beyond it the oldest are forgotten.
KEPT: Final = timedelta(days=7)
MOST_KEPT: Final = 10_000
#: Maximum characters of a stored answer; answers of creating tools are much shorter.
LONGEST_KEPT: Final = 16_384


@frozen
class Call:
    """A call with a `request_id`; `key` is of caller and id, `digest` of the tool and its arguments."""

    key: str
    digest: str
    request_id: str
    agent: str

    @classmethod
    def of(cls, caller: str, agent: str, request_id: str, tool: str, arguments: Mapping[str, Any]) -> Call:
        """The call of a tool by the token `caller` and the agent that it names."""
        key = _digest_of([caller, agent, request_id])
        return cls(key, _digest_of([tool, arguments]), request_id, agent)


@frozen
class RecordedCall:
    """A recorded call: its time, its arguments, and its answer if there is one."""

    at: datetime
    digest: str
    answer: str | None
    is_new: bool


@frozen(kw_only=True)
class BeginCall(BoardCommand[RecordedCall]):
    """Enter a call unless it is known; the reply is the recorded call."""

    agent: str
    key: str
    digest: str


@frozen(kw_only=True)
class EndCall(BoardCommand[None]):
    """Enter the answer of a call, JSON; None forgets a call that changed nothing. No reply."""

    agent: str
    key: str
    answer: str | None


def made_id(call: Call, begun: datetime) -> str:
    """Return the id of the object that a call creates."""
    digest = hashlib.sha256(f"{call.key} {format_time(begun)}".encode()).digest()
    return str(UUID(bytes=digest[:16], version=4))


def _digest_of(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
