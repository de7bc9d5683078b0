"""A port that starts a server in this process for commands and upkeep. `lithos.app` implements it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from lithos.kernel.parts import Parts


class RunServer(Protocol):
    """A port that starts a server, and stops it at the end of the block."""

    def __call__(self, config: Any, /) -> AbstractAsyncContextManager[Parts]:
        """Return the parts of the running server. Raises `AlreadyOwned`, `CorruptDatabase` and `OSError`."""


class OwnToken(Protocol):
    """The token of commands by the same user. They read it from the lock file."""

    @property
    def own_token(self) -> str:
        """Return the secret of the token."""
