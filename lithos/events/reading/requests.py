"""Serves a call with a `request_id` once: a retry gets the same answer, also after a restart."""

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
#: Serves the call; it is given since when the call is known, where it may have taken effect already.
Serve = Callable[[datetime | None], Awaitable[Answer]]
#: Seconds for a call to be entered.
DEADLINE = 30.0
_MADE: ContextVar[str | None] = ContextVar("made", default=None)


def id_to_make() -> str | None:
    """Return the id of the object that the running call creates; None if any id will do."""
    return _MADE.get()


@contextmanager
def _making(note_id: str) -> Iterator[None]:
    token = _MADE.set(note_id)
    try:
        yield
    finally:
        _MADE.reset(token)


class Requests:
    """The calls that are known by their `request_id`."""

    def __init__(self, coordinator: CoordinatorMailbox) -> None:
        self._coordinator = coordinator
        #: Set when a call that is running has ended.
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
        """The answer of a call: that of the first one where it is a retry.

        A retry that comes while the first is running waits for it. Raises `InvalidInput` where the id was
        given to another call, and the refusals of `serve`, which are not kept: nothing was made.
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
                f"request_id {call.request_id!r} was given to another call: the tool or an argument differs. "
                "Nothing was changed; give a new request_id to a new call, and the same arguments to a retry."
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
        """Enter the answer; if that fails, a retry finds the created object by its id."""
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
    message = "The call took effect; its answer is too long to be kept. Read what it changed."
    return json.dumps({"status": "done", "message": message})
