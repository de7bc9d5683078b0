"""Retention steps. A step deletes a small number of old rows of `coordination.db`."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from lithos.events.model.agents import Agent
from lithos.kernel.values.messages import Command


class UpkeepStep(Command[int]):
    """Delete a small number of old rows. The reply is the number of deleted rows."""

    __slots__ = ()


@frozen
class KeepTime(UpkeepStep):
    """Store the time of the last deletion by age. Deletes nothing."""

    settled: datetime


@frozen
class DropAudit(UpkeepStep):
    """Delete at most `most` accesses that are older than `before` or not among the newest `keep` accesses."""

    before: datetime
    keep: int
    most: int


@frozen
class DropEvents(UpkeepStep):
    """Delete at most `most` events with a seq up to `through`."""

    through: int
    most: int


@frozen
class DropCursors(UpkeepStep):
    """Delete at most `most` cursors.

    Cursors are deleted if they did not move since `before`, or if they are not among the `keep` cursors that
    moved last.
    """

    before: datetime
    keep: int
    most: int


@frozen
class DropTold(UpkeepStep):
    """Delete the projects of sessions that were last seen before `before`."""

    before: datetime


@frozen
class DropAgents(UpkeepStep):
    """Delete these agents, unless they were seen in the meantime."""

    agents: tuple[Agent, ...]


@frozen
class ForgetReads(UpkeepStep):
    """Delete the read counts of deleted notes."""

    note_ids: tuple[str, ...]
