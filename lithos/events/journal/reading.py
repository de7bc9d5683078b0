"""The thread for reads of `coordination.db`."""

from __future__ import annotations

from lithos.kernel.actors.threads import Threads


class JournalThread(Threads):
    """The only thread that uses the read connection of `coordination.db`."""

    def __init__(self) -> None:
        super().__init__(1)
