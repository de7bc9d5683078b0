"""One of several vaults in a process, and the functions that start its server."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

import trio
from attrs import define, frozen

from lithos.access.service.keyring import TokenRing
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.capability import Holds
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.configuration.load import LoadedConfig
from lithos.kernel.parts import Parts
from lithos.search.indexing.models import Models
from lithos.server.http.admissions import WrongTokens
from lithos.server.http.front import FrontParts
from lithos.server.http.ports import FrontSettings
from lithos.server.service_state import ServerState
from lithos.vaults.http.vault_routes import VaultEndpoint
from lithos.vaults.service.joint import Vault

if TYPE_CHECKING:
    from lithos.server.console.console import Console
    from lithos.vaults.console.visits import VaultState


@define(eq=False, slots=False)
class HostedVault:
    """One vault of the process. The class implements `VaultView` for the overview console."""

    #: The vault's configuration with its source and its problems. The vault's own console shows them.
    loaded: LoadedConfig
    vault: Vault
    door: VaultEndpoint
    server: Parts | None = None
    front: FrontParts | None = None

    @property
    def name(self) -> str:
        """The vault's name."""
        return self.vault.name

    @property
    def config(self) -> Config:
        """The vault's configuration."""
        return self.loaded.config

    @property
    def state(self) -> VaultState:
        """The vault's state. A vault that is still indexing serves the notes indexed so far."""
        if self.server is None:
            return "unavailable"
        return "serving" if self.server.get(Opening).complete.is_set() else "indexing"

    @property
    def reason(self) -> str:
        """Return why the vault is unavailable, or "" if there is nothing to report."""
        return "" if self.server is not None else self.vault.reason or "It is starting."

    @property
    def progress(self) -> float | None:
        """The indexed share of the notes, from 0 to 1, or None if it is unknown."""
        told = None if self.server is None else self.server.get(Opening).status()
        return None if told is None or not told.get("total") else min(1.0, told["done"] / told["total"])

    @property
    def console(self) -> Console | None:
        """The vault's console, or None while the vault is not served."""
        return None if self.front is None or self.front.make_console is None else self.front.make_console()

    @property
    def ring(self) -> TokenRing:
        """The vault's tokens."""
        return self.vault.ring


class RunVault(Protocol):
    """Port: starts the server of one vault, and stops it when the block ends."""

    def __call__(
        self, config: Config, /, *, gets_front: bool, given: Mapping[Any, object], models: Models
    ) -> AbstractAsyncContextManager[Parts]:
        """Run the server and yield its parts. The parts in `given` outlive the server."""


class MakeFront(Protocol):
    """Port: builds the web application of a server and starts its tasks in the nursery."""

    def __call__(
        self,
        settings: FrontSettings,
        server: Parts,
        shutdown: trio.Event,
        nursery: trio.Nursery,
        /,
        *,
        wrong_tokens: WrongTokens,
        keyring_runs: bool,
    ) -> Awaitable[FrontParts]: ...


@frozen
class Starting:
    """Functions that start a vault's server, implemented by `lithos.app`."""

    run: RunVault
    make_front: MakeFront
    #: Functions that check whether a server has an object with a certain id.
    holders: Sequence[Holds]


async def component_of(each: HostedVault) -> Mapping[str, Any]:
    """Return the `/health` entry of one vault, including the vault's own components."""
    if each.server is None:
        return {"status": "unavailable", "error": each.reason}
    status, body = await each.server.get(ServerState).report()
    told = "ok" if body["status"] == "ok" else "degraded"
    return {"status": told if status == 200 else "unavailable", "components": body["components"]}
