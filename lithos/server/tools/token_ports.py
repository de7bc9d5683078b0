"""Interface for tokens, as the HTTP server needs it, and a keyring with at most one token."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, Protocol

import trio

from lithos.kernel.values.principals import ANYONE, Principal

#: The principal of `server.auth_token`.
AUTH_TOKEN: Final = Principal("auth_token", "admin")


class ForeignIssuer(Protocol):
    """The tokens of another authorization server."""

    async def prepare(self, secret: bytes) -> None:
        """Fetch the key of a token, so that `Keyring.find` can verify the token."""
        ...


class Keyring(Protocol):
    """Valid tokens of a server, and the principal of each token."""

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
    """A keyring that contains only `server.auth_token`, or no token."""

    foreign: Final = None
    trouble: Final = None

    def __init__(self, auth_token: str | None) -> None:
        self._digest = None if auth_token is None else hashlib.sha256(auth_token.encode()).digest()

    @property
    def is_open(self) -> bool:
        """Return whether no token is required."""
        return self._digest is None

    def find(self, secret: bytes) -> Principal | None:
        """Return the principal of a token."""
        digest = hashlib.sha256(secret).digest()
        is_it = self._digest is not None and hmac.compare_digest(self._digest, digest)
        return AUTH_TOKEN if is_it and secret else None

    def is_valid(self, principal: Principal) -> bool:
        """Return whether this keyring still admits the principal."""
        return principal == (ANYONE if self.is_open else AUTH_TOKEN)

    async def wait_changed(self) -> None:
        """Never return, because the token never changes."""
        await trio.sleep_forever()
