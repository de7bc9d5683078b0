"""Endpoints of several vaults on one port:

`/v/NAME/...` for one vault, and the root for all vaults of a token.

Specified in docs/spec/vaults.md §2 and §3. Each vault has its own application behind a gate that checks the
vault's tokens. A caller without a valid token gets the same response as for an unknown vault. Names, states
and errors of vaults therefore stay hidden. A token that is valid in exactly one vault also reaches that vault
at the root.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Final, Protocol

from attrs import define, frozen

from lithos.kernel.values.principals import Principal
from lithos.server.http.access import find_address, presented_tokens
from lithos.server.http.application import Application
from lithos.server.http.gate import Gate, read_head
from lithos.server.http.ports import AsgiApp, Receive, Scope, Send, answer, base_of
from lithos.server.tools.token_ports import Keyring, OneToken
from lithos.vaults.http.prefixing import CONSOLE, rebased
from lithos.vaults.service.joint import JointPrincipal

_VAULT: Final = re.compile(r"/v/([a-z0-9-]{1,32})(/.*)", re.DOTALL)
LOGIN: Final = "/console/login"


class NoKeyring(OneToken):
    """The keyring of an unknown vault. It accepts no token, and a check takes as long as in a real vault."""

    def __init__(self, is_open: Callable[[], bool]) -> None:
        super().__init__(None)
        self._is_open = is_open

    @property
    def is_open(self) -> bool:
        """Return whether the other vaults are open. If they require a token, an unknown vault does too."""
        return self._is_open()

    def is_valid(self, principal: Principal) -> bool:
        """Return False, because an unknown vault accepts no principal."""
        return False


class SessionLookup(Protocol):
    """Port: checks whether a request belongs to a valid console session."""

    def knows(self, scope: Scope) -> bool: ...


@frozen(eq=False)
class VaultEndpoint:
    """One vault: its tokens, its application while it is served, and otherwise the reason why not."""

    ring: Keyring
    application: Application | None = None
    sessions: SessionLookup | None = None
    reason: str = ""

    @cached_property
    def _app(self) -> AsgiApp | None:
        return None if self.application is None else rebased(self.application.gate)

    async def enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request to this vault."""
        if self._app is None:
            why = self.reason or "it is starting"
            message = f"This vault is not served now: {why}. The server tries again automatically."
            await answer(scope, receive, send, 503, {"error": "vault_unavailable", "message": message})
        else:
            await self._app(scope, receive, send)


@define(eq=False)
class VaultRoutes:
    """An ASGI application for all vaults. `doors` maps vault names to endpoints.

    Requests to unknown vaults get the gate `nobody` and the endpoint `absent`, which reject every caller.
    """

    _root: Application
    doors: dict[str, VaultEndpoint]
    _nobody: Gate
    _absent: VaultEndpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        raw = scope["raw_path"].decode("ascii")
        named = _VAULT.fullmatch(raw)
        if named is None:
            await self._serve_root(scope, receive, send)
            return
        name, path = named[1], named[2]
        prefix = base_of(name)
        own = {
            **scope,
            "path": scope["path"].removeprefix(prefix),
            "raw_path": path.encode("ascii"),
            "root_path": prefix,
        }
        # Unknown names are checked in the same way, so that the response time does not reveal which vaults
        # exist.
        door = self.doors.get(name, self._absent)
        if self._may_enter(door, own) and door is not self._absent:
            await door.enter(own, receive, send)
        elif (
            not self._root.policy.is_open
            and path.partition("?")[0].startswith(CONSOLE)
            and own["type"] == "http"
        ):
            await answer(own, receive, send, 302, headers=[(b"location", LOGIN.encode())])
        else:
            await self._nobody(own, receive, send)

    def _may_enter(self, door: VaultEndpoint, scope: Scope) -> bool:
        """Return whether the request's credentials allow its sender to know that the vault exists."""
        if door.ring.is_open:
            return True
        if scope["path"].startswith(CONSOLE):
            sessions = door.sessions or self._absent.sessions
            return sessions is not None and sessions.knows(scope)
        return any(door.ring.find(token) is not None for token in _tokens(scope))

    async def _serve_root(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the root. If the caller's token is valid in one vault only, serve that vault."""
        path = scope["path"]
        if not path.startswith(CONSOLE) and path != "/":
            door = self._only(scope)
            if door is not None and door.application is not None:
                await door.application.gate(scope, receive, send)
                return
        await self._root.gate(scope, receive, send)

    def _only(self, scope: Scope) -> VaultEndpoint | None:
        """Return the endpoint of the only vault that accepts the request's token, or None."""
        found = [
            who for token in _tokens(scope) if (who := self._root.policy.keyring.find(token)) is not None
        ]
        parts = found[0].parts if found and isinstance(found[0], JointPrincipal) else ()
        return self.doors.get(parts[0][0]) if len(parts) == 1 else None


def _tokens(scope: Scope) -> list[bytes]:
    """Return all tokens that a request contains."""
    head = read_head(scope)
    address = find_address(head.path, console=False)
    return presented_tokens(head, in_query=address is not None and address.takes_query_token)
