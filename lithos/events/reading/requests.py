"""Calls with a `request_id` are executed only once. A retry gets the same answer, even after a restart."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any, TypeVar

import trio

from lithos.events.journal.messages import CoordinatorMailbox
from lithos.events.model.requests import LONGEST_KEPT, BeginCall, Call, EndCall, made_id
from lithos.kernel.actors.mailboxes import honest_outcome
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import InvalidInput, LithosError
from lithos.kernel.values.messages import BoardCommand

log = get_logger("lithos.requests")

T = TypeVar("T")
Answer = Mapping[str, Any] | None
#: Function that executes a call. If the call was recorded earlier and may have taken effect, the argument is
#: the time of the recording.
Serve = Callable[[datetime | None], Awaitable[Answer]]
#: Maximum seconds to wait until a call is recorded.
DEADLINE = 30.0
_MADE: ContextVar[str | None] = ContextVar("made", default=None)


def id_to_make() -> str | None:
    """Return the id for the object that the running call creates, or None if any id is allowed."""
    return _MADE.get()


@contextmanager
def _making(note_id: str) -> Iterator[None]:
    token = _MADE.set(note_id)
    try:
        yield
    finally:
        _MADE.reset(token)


class Requests:
    """Registry of calls by their `request_id`."""

    def __init__(self, coordinator: CoordinatorMailbox) -> None:
        self._coordinator = coordinator
        #: Running calls by key. The event is set when the call has ended.
        self._running: dict[str, trio.Event] = {}

    async def once(
        self,
        serve: Serve,
        *,
        caller: str,
        agent: str,
        request_id: str,
        tool: str,
        arguments: Mapping[str, Any],
    ) -> Answer:
        """Execute a call and return its answer. A retry gets the answer of the first call.

        If the first call is still running, a retry waits until it ends. Raises `InvalidInput` if the id
        belongs to another call, and the refusals of `serve`. A refused call changed nothing, so no answer is
        recorded for it.
        """
        call = Call.of(caller, agent, request_id, tool, arguments)
        while (running := self._running.get(call.key)) is not None:
            await running.wait()
        ended = self._running[call.key] = trio.Event()
        try:
            return await self._once(call, serve)
        finally:
            del self._running[call.key]
            ended.set()

    async def _once(self, call: Call, serve: Serve) -> Answer:
        begun = await self._submit(BeginCall(agent=call.agent, key=call.key, digest=call.digest))
        if begun.digest != call.digest:
            raise InvalidInput(
                f"request_id {call.request_id!r} belongs to another call: the tool or an argument "
                "differs. Nothing was changed. Use a new request_id for a new call, and the same "
                "arguments for a retry."
            )
        if begun.answer is not None:
            kept: Answer = json.loads(begun.answer)
            return kept
        try:
            with _making(made_id(call, begun.at)):
                answer = await serve(None if begun.is_new else begun.at)
        except LithosError as refusal:
            if begun.is_new and refusal.code != "internal_error":
                await self._end(call, None)
            raise
        await self._end(call, _kept(answer))
        return answer

    async def _end(self, call: Call, answer: str | None) -> None:
        """Record the answer. If this fails, a retry still finds the created object by its id."""
        try:
            await self._submit(EndCall(agent=call.agent, key=call.key, answer=answer))
        except LithosError as failure:
            log.warning("answer not kept", reason=failure.message)

    async def _submit(self, command: BoardCommand[T]) -> T:
        with honest_outcome("Send the call again with the same request_id."):
            return await self._coordinator.ask(command, within=DEADLINE)


def _kept(answer: Answer) -> str:
    text = json.dumps(answer, ensure_ascii=True, default=str)
    if len(text) <= LONGEST_KEPT:
        return text
    message = "The call took effect, but its answer is too long to be kept. Read the changed objects."
    return json.dumps({"status": "done", "message": message})
