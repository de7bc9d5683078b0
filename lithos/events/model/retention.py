"""Steps of the retention: each deletes a few old rows of `coordination.db`."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from lithos.events.model.agents import Agent
from lithos.kernel.values.messages import Command


class UpkeepStep(Command[int]):
    """Drop a few old rows; the reply is how many there were."""

    __slots__ = ()


@frozen
class KeepTime(UpkeepStep):
    """Drop nothing: store the time of the last deletion by age."""

    settled: datetime


@frozen
class DropAudit(UpkeepStep):
    """Drop at most `most` accesses from `before`, or that are not among the newest `keep`."""

    before: datetime
    keep: int
    most: int


@frozen
class DropEvents(UpkeepStep):
    """Drop at most `most` events up to the seq `through`."""

    through: int
    most: int


@frozen
class DropCursors(UpkeepStep):
    """Drop at most `most` cursors not moved since `before`, or not among the `keep` moved last."""

    before: datetime
    keep: int
    most: int


@frozen
class DropAgents(UpkeepStep):
    """Drop these agents, unless they were seen since."""

    agents: tuple[Agent, ...]


@frozen
class ForgetReads(UpkeepStep):
    """Forget how often these notes, which are gone, were read."""

    note_ids: tuple[str, ...]
