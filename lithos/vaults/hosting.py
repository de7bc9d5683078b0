"""Several vaults in one process. Each vault has a complete server, and all vaults share one port.

Specified in docs/spec/vaults.md §1. If a vault cannot be opened or its actors fail, the vault becomes
unavailable with a reason and is retried. The other vaults keep serving. The vaults share only the port, the
models and the console frame, which contain no data of a vault.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import evolve, frozen

from lithos import __version__
from lithos.access.service.keyring import TokenRing
from lithos.access.service.vault_tokens import spread_tokens
from lithos.events.journal.broadcaster import Broadcaster
from lithos.kernel.actors.allocator import keep_returning
from lithos.kernel.actors.front_signals import FrontSignals
from lithos.kernel.actors.mailboxes import ActorGaveUp
from lithos.kernel.actors.threads import Threads
from lithos.kernel.actors.tuning import tuned_process
from lithos.kernel.configuration.load import LoadedConfig
from lithos.kernel.databases.database import DatabaseLost
from lithos.kernel.databases.lock import AlreadyOwned
from lithos.kernel.databases.migrations import NewerLayout
from lithos.kernel.databases.sqlite import CorruptDatabase
from lithos.kernel.log import WORKING_FOR, get_logger
from lithos.kernel.metrics import labelled
from lithos.kernel.parts import utc_now
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.errors import first_of
from lithos.kernel.values.principals import PERSON_AGENT, Principal
from lithos.kernel.values.times import format_time
from lithos.search.indexing.models import Models
from lithos.server.command.serve_ports import publish_address
from lithos.server.console.sessions import Sessions
from lithos.server.http.access import open_bind_warning
from lithos.server.http.admissions import WrongTokens, principal_of
from lithos.server.http.application import HEALTH_PATH, Application
from lithos.server.http.connections import hypercorn_config
from lithos.server.http.gate import Gate
from lithos.server.http.ports import AsgiApp, FrontSettings, Receive, Scope, Send, VaultLink, answer, base_of
from lithos.server.http.serve import listen
from lithos.server.http.sockets import open_listeners
from lithos.server.service_state import Gauges, ServerState
from lithos.server.settings import ServerConfig
from lithos.server.tools.registry import Tools
from lithos.vaults.hosted import HostedVault, Starting, component_of
from lithos.vaults.http.vault_routes import NoKeyring, VaultEndpoint, VaultRoutes
from lithos.vaults.service.joint import JointRing, Vault, VaultSet
from lithos.vaults.service.moving import VaultMoving
from lithos.vaults.tools import JOINT
from lithos.vaults.tools_dispatch import JointTools

if TYPE_CHECKING:
    from quart_trio import QuartTrio

    from lithos.server.http.quart_app import RouteModule

log = get_logger("lithos.vaults")

#: Delay in seconds before a failed vault is opened again: first value and maximum.
RETRY: Final = 1.0
MOST_RETRY: Final = 60.0
#: Expected errors that stop a vault or prevent it from being opened. They are not bugs.
_USUAL: Final = (OSError, AlreadyOwned, CorruptDatabase, NewerLayout, ActorGaveUp)
#: Seconds of serving without failure after which the retry delay is reset to `RETRY`.
CALM: Final = 60.0


@frozen
class Port:
    """The port that all vaults share: its server settings, and the objects that the vaults share."""

    settings: FrontSettings
    url: str
    wrong_tokens: WrongTokens
    shutdown: trio.Event


class Vaults:
    """All vaults of the process."""

    def __init__(
        self,
        named: Mapping[str, LoadedConfig],
        default: str,
        starting: Starting,
        *,
        asks_always: bool = False,
    ) -> None:
        """If `asks_always` is true, callers need a token even if no token was ever created."""
        self._starting = starting
        self._working = Threads()
        self._models = Models()
        self.hosted: dict[str, HostedVault] = {}  # bounded: the vaults of the configuration
        for name, loaded in named.items():
            private = loaded.config.of(StorageConfig).data_dir / ".lithos"
            ring = TokenRing(
                private, utc_now, loaded.config.of(ServerConfig).auth_token, asks_always=asks_always
            )
            self.hosted[name] = HostedVault(loaded, Vault(name, ring), VaultEndpoint(ring))
        self.set = VaultSet({name: each.vault for name, each in self.hosted.items()}, default)
        self.ring = JointRing(self.set)
        for hosted in self.hosted.values():
            hosted.ring.others_ask_nothing = lambda: self.ring.is_open
        self.tools = JointTools(self.set, JOINT, self._moving, starting.holders)
        self._movings: dict[tuple[int, int], VaultMoving] = {}
        #: The latest loss of a database. It is raised after all vaults have stopped.
        self.loss: ExceptionGroup[DatabaseLost] | None = None

    @cached_property
    def doors(self) -> dict[str, VaultEndpoint]:
        """The endpoints by vault name. `VaultRoutes` reads this mapping for each request."""
        return {name: each.door for name, each in self.hosted.items()}

    @property
    def privates(self) -> list[Path]:
        """The private folders (`.lithos`) of all vaults."""
        return [each.config.of(StorageConfig).data_dir / ".lithos" for each in self.hosted.values()]

    async def run_rings(self, nursery: trio.Nursery) -> None:
        """Read the tokens of all vaults, and watch the token files for changes in `nursery`.

        Tokens for every vault are copied to vaults that were added later and lack them.
        """
        for trouble in await self._working.run(lambda: spread_tokens(self.privates)):
            log.warning("copying tokens to every vault failed", reason=trouble)
        for each in self.hosted.values():
            await nursery.start(each.ring.run)

    async def keep(self, each: HostedVault, port: Port) -> None:
        """Serve one vault until the shutdown. If its server ends for another reason, start it again."""
        WORKING_FOR.set(each.name)  # The value applies to this task and to all tasks that it starts.
        pause, shutdown = RETRY, port.shutdown
        while not shutdown.is_set():
            began = trio.current_time()
            try:
                await self._serve(each, port)
            except* Exception as failures:  # noqa: BLE001 - whatever one vault fails with, the others serve
                _report(each, first_of(failures))
                if (lost := failures.subgroup(DatabaseLost)) is not None:
                    self.loss = lost
            self._take_away(each, "unavailable")
            if shutdown.is_set():
                return
            pause = RETRY if trio.current_time() - began >= CALM else min(2 * pause, MOST_RETRY)
            with trio.move_on_after(pause):
                await shutdown.wait()

    async def _serve(self, each: HostedVault, port: Port) -> None:
        storage, shutdown = each.config.of(StorageConfig), port.shutdown
        if storage.vault is not None and not await self._working.run(storage.vault.is_dir):
            raise FileNotFoundError(2, "There is no folder", str(storage.vault))
        async with (
            self._starting.run(
                each.config, given={TokenRing: each.ring}, gets_front=True, models=self._models
            ) as server,
            trio.open_nursery() as nursery,
        ):
            ended = trio.Event()
            own = evolve(port.settings, max_body_bytes=8 * storage.max_content_size_bytes + (1 << 20))
            front = await self._starting.make_front(
                own, server, ended, nursery, wrong_tokens=port.wrong_tokens, keyring_runs=False
            )
            application = Application(own, server.get(Tools), server.get(ServerState), **front.application)
            nursery.start_soon(application.run, hypercorn_config(), ended)
            server.get(FrontSignals).listens.set()
            each.server, each.front = server, front
            each.vault.services, each.vault.state, each.vault.reason = server, "serving", ""
            each.door = self.doors[each.name] = VaultEndpoint(each.ring, application, front.sessions)
            publish_address(server, f"{port.url}{base_of(each.name)}")
            self.set.tell()
            try:
                await shutdown.wait()
            finally:  # also when the actors end: otherwise clients would wait on a dead stream
                self._take_away(each, "opening")
                ended.set()
                server.get(Broadcaster).close()
            nursery.cancel_scope.cancel()

    def _take_away(self, each: HostedVault, state: Any) -> None:
        each.server = each.front = None
        each.vault.services, each.vault.state = None, state
        each.door = self.doors[each.name] = VaultEndpoint(each.ring, reason=each.vault.reason)
        self.set.tell()

    # Moves between vaults

    def _moving(self, source: Vault, target: Vault) -> VaultMoving:
        """Return the service that moves notes from one vault to another.

        Each pair of running servers has one service, which moves one note at a time.
        """
        here, there = source.serving(), target.serving()
        key = (id(here), id(there))
        if key not in self._movings:
            alive = {id(each.server) for each in self.hosted.values()}
            self._movings = {pair: kept for pair, kept in self._movings.items() if alive.issuperset(pair)}
            self._movings[key] = VaultMoving(here, there, target.name)
        return self._movings[key]

    # Reports that cover all vaults

    def links(self, current: str | None, principal: Principal) -> Sequence[VaultLink]:
        """Return links to the other vaults that this principal of the `current` vault may open."""
        home = self.hosted.get(current or "")
        if home is None:
            return ()
        secret = home.ring.fingerprint(principal)
        return [
            VaultLink(each.name, f"{base_of(each.name)}/console/", each.name == current)
            for each in self.hosted.values()
            if each.ring.is_open or each.name == current or (secret is not None and each.ring.has(secret))
        ]

    async def tell_health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer `/health`. The answer has one component per vault that the caller may use, if any."""
        if scope["method"] not in {"GET", "HEAD"}:
            refusal = {"error": "method_not_allowed"}
            await answer(scope, receive, send, 405, refusal, headers=[(b"allow", b"GET, HEAD")])
            return
        who = principal_of(scope)
        if who is None and not self.ring.is_open:
            shown: list[HostedVault] = []
        elif who is None:
            shown = list(self.hosted.values())
        else:
            shown = [self.hosted[vault.name] for vault, _ in self.set.allowed(who)]
        components = {each.name: await component_of(each) for each in shown}
        statuses = {str(each["status"]) for each in components.values()}
        serving = any(each.server is not None for each in (shown or self.hosted.values()))
        body = {
            "status": "ok" if serving and statuses <= {"ok"} else "degraded",
            "timestamp": format_time(utc_now()),
            "version": __version__,
            "components": components,
        }
        unkept = [(b"cache-control", b"no-store")]
        await answer(scope, receive, send, 200 if serving else 503, body, headers=unkept)

    async def scrape(self, principal: Principal | None) -> bytes:
        """Return the metrics of all vaults whose metrics the caller may read.

        Each metric has the label `vault` with the vault's name.
        """
        families = {}
        for vault, who in self.set.allowed(principal) if principal is not None else []:
            server = self.hosted[vault.name].server
            if server is not None and who.may("metrics"):
                families[vault.name] = await server.get(Gauges).families()
        return await trio.to_thread.run_sync(labelled, families)


async def serve_vaults(
    vaults: Vaults,
    settings: FrontSettings,
    shutdown: trio.Event,
    url_of: Callable[[str, int], str],
    *,
    task_status: trio.TaskStatus[tuple[str, int]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve all vaults until `shutdown`.

    `started()` receives the bound host and port. `url_of` returns the URL for a host and port.
    """
    with tuned_process():
        listeners = await open_listeners(settings.host, settings.port)
        bound = listeners[0].socket.getsockname()[:2]
        wrong_tokens, ended = WrongTokens(), trio.Event()
        async with trio.open_nursery() as keeping, trio.open_nursery() as nursery:
            await vaults.run_rings(nursery)
            root = _root(vaults, settings, shutdown, wrong_tokens)
            if warning := open_bind_warning(root.policy):
                log.warning(warning)
            no_keyring = NoKeyring(lambda: vaults.ring.is_open)
            policy = evolve(root.policy, keyring=no_keyring)
            nobody = Gate(_nothing, policy, settings.max_body_bytes, wrong_tokens=wrong_tokens)
            absent = VaultEndpoint(no_keyring, sessions=Sessions(utc_now, PERSON_AGENT, no_keyring))
            routes = VaultRoutes(root, vaults.doors, nobody, absent)
            url = url_of(*bound)
            for each in vaults.hosted.values():
                own = evolve(
                    settings,
                    sources=each.loaded.sources,
                    warnings=each.loaded.warnings,
                    vaults=partial(vaults.links, each.name),
                )
                keeping.start_soon(vaults.keep, each, Port(own, url, wrong_tokens, shutdown))
            nursery.start_soon(root.run, hypercorn_config(), ended)
            nursery.start_soon(_collect_at_last)
            nursery.start_soon(keep_returning)
            await listen(listeners, routes, shutdown, task_status=task_status)
            ended.set()
            nursery.cancel_scope.cancel()
    if vaults.loss is not None:
        raise vaults.loss


def _root(
    vaults: Vaults, settings: FrontSettings, shutdown: trio.Event, wrong_tokens: WrongTokens
) -> Application:
    """Return the root application: joint tools, health, metrics and the console of all vaults."""
    routes: list[RouteModule] = [partial(_add_metrics, vaults)]
    if settings.console:
        routes.append(partial(_add_console, vaults, wrong_tokens))
    apps: dict[str, AsgiApp] = {HEALTH_PATH: vaults.tell_health}
    return Application(
        settings,
        vaults.tools,
        None,  # No health handler is needed: `Vaults.tell_health` answers `/health`.
        shutdown=shutdown,
        keyring=vaults.ring,
        wrong_tokens=wrong_tokens,
        apps=apps,
        routes=routes,
    )


def _add_console(vaults: Vaults, wrong_tokens: WrongTokens, app: QuartTrio) -> None:
    from lithos.vaults.console.overview import SeveralConsole  # noqa: PLC0415 - only once it listens

    hosted = vaults.hosted
    SeveralConsole(lambda: list(hosted.values()), __version__, utc_now, wrong_tokens).add_routes(app)


def _add_metrics(vaults: Vaults, app: QuartTrio) -> None:
    from quart import request  # noqa: PLC0415 - only once it listens

    from lithos.upkeep.console.monitoring import add_metrics  # noqa: PLC0415 - only once it listens

    async def scrape() -> bytes:
        scope: Any = request.scope
        return await vaults.scrape(principal_of(scope))

    add_metrics(scrape, app)


async def _collect_at_last() -> None:
    """Start periodic garbage collection here. If no vault can be opened, no vault starts it."""
    await trio.sleep(MOST_RETRY)
    gc.enable()


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(scope, receive, send, 404, {"error": "not_found"})


def _report(each: HostedVault, failure: BaseException) -> None:
    """Store the reason for a vault's failure, and log the failure once.

    Unexpected errors are logged with a traceback.
    """
    before, each.vault.reason = each.vault.reason, _told(failure)
    if each.vault.reason != before:
        known = failure if not isinstance(failure, _USUAL) else None
        log.error("vault unavailable", vault=each.name, reason=each.vault.reason, exc=known)


def _told(failure: BaseException) -> str:
    """Return the reason for a vault's failure as text without a final full stop."""
    if isinstance(failure, OSError) and failure.filename:
        return f"{failure.strerror}: {failure.filename}"
    return (str(failure) or type(failure).__name__).rstrip(".")
