"""One vault of several in one process, and how its server is started."""

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
    """One vault of the process; also what the console before all vaults shows of it (`VaultView`)."""

    #: Its configuration; where that is from, and what is wrong with it, its own console shows.
    loaded: LoadedConfig
    vault: Vault
    door: VaultEndpoint
    server: Parts | None = None
    front: FrontParts | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.vault.name

    @property
    def config(self) -> Config:
        """Its configuration."""
        return self.loaded.config

    @property
    def state(self) -> VaultState:
        """Whether it serves; one that is indexing serves what it has."""
        if self.server is None:
            return "unavailable"
        return "serving" if self.server.get(Opening).complete.is_set() else "indexing"

    @property
    def reason(self) -> str:
        """Why it is unavailable; empty for nothing."""
        return "" if self.server is not None else self.vault.reason or "It is being opened."

    @property
    def progress(self) -> float | None:
        """Which share of the notes is indexed; None where that is not known."""
        told = None if self.server is None else self.server.get(Opening).status()
        return None if told is None or not told.get("total") else min(1.0, told["done"] / told["total"])

    @property
    def console(self) -> Console | None:
        """Its console, while it is served."""
        return None if self.front is None or self.front.make_console is None else self.front.make_console()

    @property
    def ring(self) -> TokenRing:
        """Its tokens."""
        return self.vault.ring


class RunVault(Protocol):
    """Starts the server of one vault, and stops it at the end of the block."""

    def __call__(
        self, config: Config, /, *, gets_front: bool, given: Mapping[Any, object], models: Models
    ) -> AbstractAsyncContextManager[Parts]:
        """The parts of the running server; `given` are those that outlive it."""


class MakeFront(Protocol):
    """Makes the application of a server; its tasks are started in the nursery."""

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
    """How the server of a vault is started; `lithos.app` implements it."""

    run: RunVault
    make_front: MakeFront
    #: Checks whether a server has an object with an id.
    holders: Sequence[Holds]


async def component_of(each: HostedVault) -> Mapping[str, Any]:
    """One vault in `/health`, with its own components."""
    if each.server is None:
        return {"status": "unavailable", "error": each.reason}
    status, body = await each.server.get(ServerState).report()
    told = "ok" if body["status"] == "ok" else "degraded"
    return {"status": told if status == 200 else "unavailable", "components": body["components"]}
