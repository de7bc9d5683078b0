"""The actor kit: mailboxes, request and reply, batching, supervision and orderly shutdown.

An actor is a function that serves an inbox. The inbox is a bounded queue, so a full queue slows the senders
down. Other code uses the actor's `Mailbox`. `ask` waits for the reply, and its deadline covers queueing and
work. `post` queues the message and returns its `Envelope`, a future on which the sender can await the reply
later. `run_batches` takes all queued messages and flushes them as one batch, which gives group commit.
`supervise` restarts a crashed actor without losing queued messages. To shut down, close the first mailbox:
each actor that ends closes the mailboxes downstream.

A refusal is a *reply*: an exception instance that `flush` returns. An exception that `flush` raises is a
*crash*. Every envelope of the batch then gets `ActorDown`, because the batch may or may not have been
applied. `honest_outcome` translates both cases for a caller: nothing was changed, or the outcome is unknown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Generic, Protocol, TypeVar, cast

import attrs
import outcome
import trio

from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import StorageFailed
from lithos.kernel.values.messages import Command

log = get_logger("lithos.actors")

M = TypeVar("M")
R = TypeVar("R")


class ActorDown(Exception):
    """The actor died before it replied to the request.

    The request may or may not have been applied, so read again first.
    """


class ActorGaveUp(Exception):
    """The actor crashed too often. The process must end, so that its supervisor restarts it."""


class ShuttingDown(Exception):
    """The mailbox is closed and the message was not applied."""


@attrs.define(eq=False)
class Envelope(Generic[M, R]):
    """One request, and its reply once the actor has resolved it.

    An envelope is a future that one caller awaits.
    """

    message: M
    #: Whether the caller stopped waiting (timeout or cancellation). If so, the request is dropped unless work
    #: on it has begun.
    abandoned: bool = False
    done: trio.Event = attrs.field(factory=trio.Event)
    result: outcome.Outcome[R] | None = None
    #: Callback on completion. A caller uses it to wait for the first of several replies.
    on_done: Callable[[], None] | None = None

    def resolve(self, result: outcome.Outcome[R]) -> None:
        """Complete the request with its reply and wake the caller."""
        self.result = result
        self.done.set()
        if self.on_done is not None:
            self.on_done()

    async def reply(self) -> R:
        """Wait for the reply. Raises the refusal, `ActorDown` or `ShuttingDown`.

        Only one caller may await the reply, once, and that caller sets the deadline. If the reply has already
        arrived, the call returns without a turn of the event loop.
        """
        if self.result is None:
            await self.done.wait()
        assert self.result is not None
        return self.result.unwrap()


@attrs.define(eq=False)
class MailboxStats:
    """Counters of one mailbox and its actor. Times are in seconds."""

    capacity: int
    handled: int = 0
    batches: int = 0
    busy_seconds: float = 0.0
    #: Callback with the duration of every batch in seconds.
    on_batch: Callable[[float], None] | None = None
    restarts: int = 0

    def record(self, messages: int, seconds: float) -> None:
        """Add one batch to the counters."""
        self.handled += messages
        self.batches += 1
        self.busy_seconds += seconds
        if self.on_batch is not None:
            self.on_batch(seconds)


class Mailbox(Generic[M]):
    """The sending side of an actor.

    All senders share one Mailbox, so a single `close` ends the inbox of the actor.

    `M` is the union of all messages that the actor accepts. Each command defines the type of its reply.
    """

    def __init__(self, name: str, capacity: int) -> None:
        self.name = name
        self._send, self.inbox = trio.open_memory_channel[Envelope[M, Any]](capacity)
        self.stats = MailboxStats(capacity)

    @property
    def depth(self) -> int:
        """Return the number of waiting messages."""
        return self._send.statistics().current_buffer_used

    def close(self) -> None:
        """Stop accepting messages. Queued messages are still served (graceful shutdown)."""
        self._send.close()

    async def post(self, message: Command[R]) -> Envelope[M, R]:
        """Queue a message and return its envelope. Raises `ShuttingDown` or `ActorDown`."""
        envelope = self._address(message)
        await self._queue(envelope)
        return envelope

    async def ask(self, message: Command[R], *, within: float = 30.0) -> R:
        """Queue a message and wait for its reply.

        Raises the actor's refusal, `ShuttingDown` (not applied), `ActorDown` (outcome unknown), or
        `trio.TooSlowError` (dropped if the message was still queued).

        The time limit is split into two halves, because a deadline is a clock time. When a suspended process
        or machine resumes, the deadline of the first half has expired. The second half then still applies,
        however long the suspension took.
        """
        envelope = self._address(message)
        is_queued = False
        try:
            for _ in range(2):
                with trio.move_on_after(within / 2):
                    if not is_queued:
                        await self._queue(envelope)
                        is_queued = True
                    return await envelope.reply()
            raise trio.TooSlowError
        finally:
            envelope.abandoned = True

    def nudge(self, message: M) -> None:
        """Queue a message if there is space.

        If the mailbox is full, drop the message, because a full mailbox means that a batch is due anyway.
        """
        with suppress(trio.WouldBlock, trio.ClosedResourceError, trio.BrokenResourceError):
            self._send.send_nowait(Envelope(message))

    def _address(self, message: Command[R]) -> Envelope[M, R]:
        # The type system cannot express "of the union `M` and a Command[R]". This cast is the only place that
        # needs it.
        return Envelope(cast(M, message))

    async def _queue(self, envelope: Envelope[M, Any]) -> None:
        try:
            try:
                # There is no turn of the event loop here, because it may take milliseconds and would not
                # change the order. The actor handles messages in order, and the caller waits for the reply.
                self._send.send_nowait(envelope)
            except trio.WouldBlock:
                await self._send.send(envelope)
        except trio.ClosedResourceError:
            # An await that raises may not be a checkpoint. Without this checkpoint, a caller that retries
            # could freeze the event loop.
            await trio.lowlevel.checkpoint()
            raise ShuttingDown(f"{self.name} is stopping") from None
        except trio.BrokenResourceError:
            await trio.lowlevel.checkpoint()
            raise ActorDown(f"{self.name} is gone") from None


Flush = Callable[[Sequence[M]], Awaitable[Sequence[object]]]
Inbox = trio.MemoryReceiveChannel[Envelope[M, Any]]


async def run_batches(
    inbox: Inbox[M],
    flush: Flush[M],
    *,
    size: int,
    linger: float | Callable[[], float] = 0.0,
    is_urgent: Callable[[M], bool] = lambda _: False,
    on_served: Callable[[], None] = lambda: None,
    limit: float = 60.0,
    stats: MailboxStats | None = None,
) -> None:
    """Serve the inbox in batches until the last sender closes it.

    A batch is flushed when it has `size` messages, when it has a message that `is_urgent`, or when its oldest
    message has waited `linger` seconds. If `linger` is not set, a batch contains only the messages that are
    already queued. `on_served` is called after the replies of a batch.

    `flush` is shielded from cancellation for at most `limit` seconds, so it either completes or crashes. It
    returns one reply per message. A reply that is an exception instance is a refusal.
    """
    async for first in inbox:
        batch = await _collect(inbox, first, size, linger() if callable(linger) else linger, is_urgent)
        if not batch:
            continue
        began = trio.current_time()
        try:
            with trio.fail_after(limit, shield=True):
                replies = await flush([envelope.message for envelope in batch])
            if len(replies) != len(batch):
                raise RuntimeError(f"{len(replies)} replies to {len(batch)} messages")
        except BaseException as crash:
            for envelope in batch:
                envelope.resolve(outcome.Error(ActorDown(repr(crash))))
            raise
        for envelope, reply in zip(batch, replies, strict=True):
            envelope.resolve(outcome.Error(reply) if isinstance(reply, Exception) else outcome.Value(reply))
        if stats is not None:
            stats.record(len(batch), trio.current_time() - began)
        on_served()


async def _collect(
    inbox: Inbox[M], first: Envelope[M, Any], size: int, linger: float, is_urgent: Callable[[M], bool]
) -> list[Envelope[M, Any]]:
    batch = [first]
    can_wait = linger > 0 and not is_urgent(first.message)
    try:
        with trio.move_on_after(linger) if can_wait else nullcontext(), suppress(trio.EndOfChannel):
            while len(batch) < size:
                try:
                    # Take queued messages without waiting first. Under an expired deadline, `receive` would
                    # leave them unread.
                    batch.append(inbox.receive_nowait())
                except trio.WouldBlock:
                    if not can_wait:
                        break
                    batch.append(await inbox.receive())
                can_wait = can_wait and not is_urgent(batch[-1].message)
    except trio.Cancelled:
        _refuse(batch)
        raise
    return [envelope for envelope in batch if not envelope.abandoned]


def _refuse(envelopes: Iterable[Envelope[M, Any]]) -> None:
    """Reply `ShuttingDown` (nothing was applied), so that callers do not wait until their timeouts."""
    for envelope in envelopes:
        envelope.resolve(outcome.Error(ShuttingDown("the actor ended before it handled this request")))


@attrs.define
class _StartedOnce:
    """A task status that allows several calls of `started`.

    Trio's task status allows only one call. However, every restart calls `started`, and the first successful
    boot may be a restart.
    """

    _status: trio.TaskStatus[None] | None

    def started(self, value: None = None) -> None:
        status, self._status = self._status, None
        if status is not None:
            status.started(value)


@contextmanager
def _refusing_the_rest(mailbox: Mailbox[M]) -> Iterator[None]:
    try:
        yield
    finally:
        _refuse(_left_in(mailbox.inbox))


def _left_in(inbox: Inbox[M]) -> Iterator[Envelope[M, Any]]:
    with suppress(trio.WouldBlock, trio.EndOfChannel):
        while True:
            yield inbox.receive_nowait()


class ActorBody(Protocol[M]):
    """The body of an actor.

    The body rebuilds the actor's state from disk, calls `task_status.started()` and serves the inbox.
    """

    async def __call__(self, inbox: Inbox[M], *, task_status: trio.TaskStatus[None]) -> None: ...


async def supervise(
    mailbox: Mailbox[M],
    start: ActorBody[M],
    *,
    closes: Iterable[Mailbox[Any]] = (),
    crashes: int = 3,
    window: float = 60.0,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run an actor and restart it with backoff after a crash.

    When its inbox ends, close the mailboxes in `closes`.

    More than `crashes` crashes within `window` seconds raise `ActorGaveUp`. The supervisor owns the receiving
    end, so queued messages survive a crash. If the actor is cancelled or given up, the remaining messages get
    the reply `ShuttingDown`.
    """
    recent: deque[float] = deque()
    status = _StartedOnce(task_status)
    with mailbox.inbox, _refusing_the_rest(mailbox):
        while True:
            try:
                async with mailbox.inbox.clone() as mine:
                    await start(mine, task_status=status)
                break
            except Exception as crash:  # Cancelled is not an Exception, so it never causes a restart.
                recent.append(trio.current_time())
                while recent[0] <= recent[-1] - window:
                    recent.popleft()
                log.error("actor crashed", actor=mailbox.name, crashes=len(recent), exc_info=crash)
                if len(recent) > crashes:
                    raise ActorGaveUp(f"{mailbox.name} crashed {len(recent)} times") from crash
                mailbox.stats.restarts += 1
                await trio.sleep(0.1 * 2 ** len(recent))
    for downstream in closes:
        downstream.close()


@contextmanager
def honest_outcome(before_retrying: str) -> Iterator[None]:
    """Turn actor failures and timeouts into `StorageFailed`.

    `before_retrying` says what the caller should check first.
    """
    try:
        yield
    except ShuttingDown:
        raise StorageFailed("The server is stopping; nothing was changed. Retry after its restart.") from None
    except (ActorDown, trio.TooSlowError) as failure:
        raise StorageFailed(
            f"The outcome of this change is unknown: {str(failure) or 'it took too long'}. {before_retrying}"
        ) from failure
