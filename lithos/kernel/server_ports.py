"""The port through which commands and upkeep start a server in this process; `lithos.app` implements it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from lithos.kernel.parts import Parts


class RunServer(Protocol):
    """Starts a server, and stops it at the end of the block."""

    def __call__(self, config: Any, /) -> AbstractAsyncContextManager[Parts]:
        """Return the parts of the running server. Raises `AlreadyOwned`, `CorruptDatabase` and `OSError`."""


class OwnToken(Protocol):
    """The token that admits commands of the same user; they read it from the lock file."""

    @property
    def own_token(self) -> str:
        """Return its secret."""
