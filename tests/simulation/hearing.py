"""Simulated file notifications. They arrive late, in groups or not at all."""

from __future__ import annotations

from random import Random
from typing import Any

import trio
from attrs import define, field

import lithos.notes.watching.notifications


@define
class Hearing:
    """Maximum delay of notifications in seconds, and the fraction of lost notifications."""

    delay: float = 0.3
    loss: float = 0.0
    random: Random = field(factory=Random)
    feeds: list[Feed] = field(factory=list)

    def touch(self, path: str) -> None:
        """Record that the file at a path changed."""
        for feed in self.feeds:
            if self.random.random() >= self.loss:
                feed.paths.append(path)
                feed.news.set()


@define(eq=False)
class Feed:
    """The notification queue of one listener."""

    paths: list[str] = field(factory=list)
    news: trio.Event = field(factory=trio.Event)


def make_listening(hearing: Hearing) -> type:
    """Return a substitute class for `FolderWatch`. It gets notifications from the simulated disk."""

    class SimulatedListening:
        def __init__(self, *_: Any) -> None:
            self._stopped = False
            self._feed = Feed()

        def stop(self) -> None:
            self._stopped = True
            self._feed.news.set()

        async def notices(self) -> Any:
            feed = self._feed
            hearing.feeds.append(feed)
            try:
                await trio.sleep(hearing.random.random() * hearing.delay)
                yield set()
                while not self._stopped:
                    with trio.move_on_after(1.0):
                        await feed.news.wait()
                        await trio.sleep(0.04 + hearing.random.random() * hearing.delay)
                    feed.news = trio.Event()
                    paths, feed.paths = feed.paths, []
                    yield {
                        path for path in paths if not lithos.notes.watching.notifications._is_passing(path)
                    }
            finally:
                hearing.feeds.remove(feed)

    return SimulatedListening
