"""Calls with a `request_id`, for which a retry gets the answer of the first call (docs/spec/tools.md §1.6).

A call is recorded before it changes anything, and its answer afterwards. Without a recorded answer, it is
unknown whether the call took effect. Objects that a call creates get an id derived from the call, so that a
retry does not create them again.
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

#: Period for which calls are remembered, and maximum number of calls. Beyond it, the oldest calls are
#: forgotten.
KEPT: Final = timedelta(days=7)
MOST_KEPT: Final = 10_000
#: Maximum characters of a stored answer. Answers of creating tools are much shorter.
LONGEST_KEPT: Final = 16_384


@frozen
class Call:
    """A call with a `request_id`. `key` identifies caller and id, `digest` the tool and its arguments."""

    key: str
    digest: str
    request_id: str
    agent: str

    @classmethod
    def of(cls, caller: str, agent: str, request_id: str, tool: str, arguments: Mapping[str, Any]) -> Call:
        """Return the call of a tool, made with the token `caller` by the given agent."""
        key = _digest_of([caller, agent, request_id])
        return cls(key, _digest_of([tool, arguments]), request_id, agent)


@frozen
class RecordedCall:
    """A recorded call: its time, the digest of its arguments, and its answer, if it has one."""

    at: datetime
    digest: str
    answer: str | None
    is_new: bool


@frozen(kw_only=True)
class BeginCall(BoardCommand[RecordedCall]):
    """Record a call unless it is known. The reply is the recorded call."""

    agent: str
    key: str
    digest: str


@frozen(kw_only=True)
class EndCall(BoardCommand[None]):
    """Record the answer of a call as JSON.

    None deletes the record of a call that changed nothing. There is no reply.
    """

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
