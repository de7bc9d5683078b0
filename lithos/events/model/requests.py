"""Calls with a `request_id`. A retry gets the answer of the first call (docs/spec/tools.md §1.6).

A call is recorded before it changes anything, and its answer is recorded afterwards. If there is no recorded
answer, it is unknown whether the call took effect. An object that a call creates gets an id derived from the
call, so that a retry does not create it again.
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

#: Period for which calls are kept, and maximum number of calls. Older calls are deleted first.
KEPT: Final = timedelta(days=7)
MOST_KEPT: Final = 10_000
#: Maximum characters of a stored answer. Tools that create objects have much shorter answers.
LONGEST_KEPT: Final = 16_384


@frozen
class Call:
    """A call with a `request_id`.

    `key` identifies the caller and the id, `digest` the tool and its arguments.
    """

    key: str
    digest: str
    request_id: str
    agent: str

    @classmethod
    def of(cls, caller: str, agent: str, request_id: str, tool: str, arguments: Mapping[str, Any]) -> Call:
        """Return the call of `tool`, made by `agent` with the token `caller`."""
        key = _digest_of([caller, agent, request_id])
        return cls(key, _digest_of([tool, arguments]), request_id, agent)


@frozen
class RecordedCall:
    """A recorded call: its time, the digest of its arguments, and its answer if there is one."""

    at: datetime
    digest: str
    answer: str | None
    is_new: bool


@frozen(kw_only=True)
class BeginCall(BoardCommand[RecordedCall]):
    """Record a call, unless it is already recorded. The reply is the recorded call."""

    agent: str
    key: str
    digest: str


@frozen(kw_only=True)
class EndCall(BoardCommand[None]):
    """Record the answer of a call as JSON. There is no reply.

    An answer of None means that the call changed nothing. Its record is then deleted.
    """

    agent: str
    key: str
    answer: str | None


def made_id(call: Call, begun: datetime) -> str:
    """Return the id for the object that a call creates."""
    digest = hashlib.sha256(f"{call.key} {format_time(begun)}".encode()).digest()
    return str(UUID(bytes=digest[:16], version=4))


def _digest_of(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
