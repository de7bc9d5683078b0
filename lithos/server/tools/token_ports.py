"""Interfaces for tokens that the HTTP server needs, and a keyring with at most one token."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, Protocol

import trio

from lithos.kernel.values.principals import ANYONE, Principal

#: Principal of the token in `server.auth_token`.
AUTH_TOKEN: Final = Principal("auth_token", "admin")


class ForeignIssuer(Protocol):
    """Interface to an external authorization server whose tokens are accepted."""

    async def prepare(self, secret: bytes) -> None:
        """Fetch the key with which `Keyring.find` can verify a token."""
        ...


class Keyring(Protocol):
    """Interface for the valid tokens of a server, each with its principal."""

    @property
    def is_open(self) -> bool: ...

    @property
    def trouble(self) -> str | None: ...

    @property
    def foreign(self) -> ForeignIssuer | None: ...

    def find(self, secret: bytes) -> Principal | None: ...

    def is_valid(self, principal: Principal) -> bool: ...

    async def wait_changed(self) -> None: ...


class OneToken:
    """Keyring that contains only `server.auth_token`, or no token."""

    foreign: Final = None
    trouble: Final = None

    def __init__(self, auth_token: str | None) -> None:
        self._digest = None if auth_token is None else hashlib.sha256(auth_token.encode()).digest()

    @property
    def is_open(self) -> bool:
        """Return whether no token is required."""
        return self._digest is None

    def find(self, secret: bytes) -> Principal | None:
        """Return the principal of a token, or None if the token is not valid."""
        digest = hashlib.sha256(secret).digest()
        is_it = self._digest is not None and hmac.compare_digest(self._digest, digest)
        return AUTH_TOKEN if is_it and secret else None

    def is_valid(self, principal: Principal) -> bool:
        """Return whether this keyring still admits a principal."""
        return principal == (ANYONE if self.is_open else AUTH_TOKEN)

    async def wait_changed(self) -> None:
        """Wait forever, because this token never changes."""
        await trio.sleep_forever()
