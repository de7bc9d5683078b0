"""What `lithos serve` shows of capabilities that a server may lack."""

from __future__ import annotations

from typing import Protocol


class Backlog(Protocol):
    """Files that a server still reads once it has all notes."""

    @property
    def waiting(self) -> int:
        """How many have not been read yet."""

    async def known(self) -> bool:
        """Wait until it is known how many there are; False where none are read."""


class StartupNotice(Protocol):
    """What a server says of itself once it serves."""

    @property
    def announcement(self) -> str | None:
        """A line for whoever started it; None where there is nothing to say."""
