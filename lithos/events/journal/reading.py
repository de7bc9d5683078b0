"""The thread that reads `coordination.db`."""

from __future__ import annotations

from lithos.kernel.actors.threads import Threads


class JournalThread(Threads):
    """One thread, since there is one read connection of the coordination database."""

    def __init__(self) -> None:
        super().__init__(1)
