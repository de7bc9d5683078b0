"""One seed: a server, agents, people, listeners, failures and crashes during virtual minutes or hours."""

from __future__ import annotations

import functools
import hashlib
import json
import typing
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import trio
from attrs import define, field

from lithos.app.server import Server, running_server
from lithos.app.stores import close_stores
from lithos.events.journal.broadcaster import Broadcaster
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.open_stores import Stores
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.errors import StorageFailed
from lithos.notes.settings import IndexConfig
from lithos.server.settings import ServerConfig
from tests.simulation.agents import Agent
from tests.simulation.checking import PATIENCE, settle, stop
from tests.simulation.disk import SimulatedDisk
from tests.simulation.ledger import Broken, Ledger, demand, tokens
from tests.simulation.loop import PROCESS, Chance, SimulatedClock, Workers
from tests.simulation.network import Gone, Listener, call_over_http, make_front
from tests.simulation.people import Person
from tests.simulation.plan import Plan, make_plan

#: Probability that an idle person saves a file between two calls of the server.
RUSH = 0.1


@define(eq=False)
class Life:
    """One process of the server, from its start to its end."""

    number: int
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    is_dead: bool = False
    server: Server | None = None
    stores: Stores | None = None
    nursery: trio.Nursery | None = None
    front: Any = None
    stopping: trio.Event = field(factory=trio.Event)
    ended: trio.Event = field(factory=trio.Event)
    gone: trio.Event = field(factory=trio.Event)


@define(eq=False)
class World:
    """The parties of one seed, and the state that they share."""

    WORD = "quokka"

    seed: int
    folder: Path
    tell: Callable[[str], object] | None = None
    chance: Chance = field(init=False)
    plan: Plan = field(init=False)
    clock: SimulatedClock = field(factory=SimulatedClock)
    ledger: Ledger = field(factory=Ledger)
    disk: SimulatedDisk = field(init=False)
    workers: Workers = field(init=False)
    people: list[Person] = field(factory=list)
    listeners: list[Listener] = field(factory=list)
    edges: set[str] = field(factory=set)
    number: int = 0
    is_winding_down: bool = False
    is_ending: bool = False
    life: Life | None = None
    lives: int = 0
    is_up: bool = False
    _news: trio.Event = field(factory=trio.Event)
    steps: int = 0
    had_faults: bool = False
    problem: BaseException | None = None
    _root: trio.CancelScope = field(factory=trio.CancelScope)
    _hash: Any = field(factory=lambda: hashlib.blake2b(digest_size=8))
    _tokens: int = 0

    def __attrs_post_init__(self) -> None:
        self.chance = Chance(self.seed)
        self.plan = make_plan(self.chance.of("plan"), self.chance.of("hearing"))
        self.workers = Workers(self.clock, self.chance.of("workers"), self.plan.pace)
        root = self.folder / "0"
        root.mkdir(parents=True)
        self.disk = SimulatedDisk(
            str(root),
            clock=self.clock,
            random=self.chance.of("disk"),
            faults=self.plan.faults,
            on_touch=self.plan.hearing.touch,
            reach=self._reach,
        )

    # -- for the parties -------------------------------------------------------------------------

    def trace(self, *what: Any) -> None:
        """Add an event to the digest. The digest is equal in every run of the seed."""
        self.steps += 1
        line = f"{self.clock.now:.6f} {' '.join(map(str, what))}".replace(str(self.folder), "")
        self._hash.update(line.encode())
        if self.tell is not None:
            self.tell(line)

    def token(self, kind: str) -> str:
        """Return a word that occurs only once."""
        self._tokens += 1
        return f"zq{kind}{self._tokens}z"

    def tokens_of(self, text: bytes) -> set[str]:
        """Return the tokens in a text."""
        return tokens(text)

    def winds_down(self) -> bool:
        """Return whether all parties should stop their work."""
        return self.is_winding_down

    def take_number(self) -> int:
        """Return a number for a title."""
        self.number += 1
        return self.number

    def unlinked_save(self, name: str, text: bytes) -> None:
        """Raise `Broken`, because a person saved into a file that the server had unlinked."""
        raise Broken(f"a person saved {sorted(tokens(text))} into {name}, which has no name any more")

    def _hear(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "note.deleted" and data["agent"] in ("watcher", "scan"):
            self.ledger.reborn.add(data["id"])

    def excuse_failure(self, answer: dict[str, Any]) -> None:
        """Raise unless the tool failed for a permitted reason, such as a disk failure or a stop."""
        message = str(answer["message"])
        is_reason = (
            self.had_faults
            or self.plan.lapses
            or self.plan.pace.stall_share
            or "stopping" in message
            or "another program" in message.lower()
        )
        demand(
            is_reason or "missing" in message or "indexing" in message,
            f"a tool failed without a reason: {message}",
        )

    def _reach(self) -> None:
        random = self.chance.of("reach")
        if self.people and random.random() < self.plan.reach:
            person = random.choice(self.people)
            if person.steps:
                person.step()
            elif random.random() < RUSH and not any(one.steps for one in self.people):
                person.rush()

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool of the running server. Raise `Gone` if no answer arrives."""
        random, weather = self.chance.of("network"), self.plan.weather
        await self.wait_up()
        life = self.life
        assert life is not None
        assert life.nursery is not None
        await trio.sleep(random.random() * weather.delay)
        self.trace("call", tool, arguments)
        if random.random() < weather.lost_requests or life.is_dead or life.stopping.is_set():
            await trio.sleep(random.random() * 10)
            raise Gone
        is_direct = random.random() < weather.direct
        answers: list[Any] = []
        answered = trio.Event()

        async def serve() -> None:
            PROCESS.set(life)
            try:
                assert life.server is not None
                if is_direct:
                    answer = await life.server.tools.call(tool, arguments)
                    answers.append(json.loads(json.dumps(answer)))
                else:
                    answers.append(await call_over_http(life.front, tool, arguments))
            except Exception as failure:  # noqa: BLE001 - a tool must not raise
                self._fail(failure)
            finally:
                answered.set()

        life.nursery.start_soon(serve)
        async with trio.open_nursery() as nursery:

            async def give_up() -> None:
                await life.gone.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(give_up)
            for _ in range(2):  # two attempts, because the machine may sleep longer than one timeout
                with trio.move_on_after(PATIENCE):
                    await answered.wait()
                    break
            nursery.cancel_scope.cancel()
        if not answers:
            demand(
                life.is_dead or life.gone.is_set() or life.ended.is_set(),
                f"{tool} was not answered within {PATIENCE} s",
            )
            raise Gone
        if life.is_dead or random.random() < weather.lost_answers:
            raise Gone
        await trio.sleep(random.random() * weather.delay)
        self.trace("answer", tool, json.dumps(answers[0], sort_keys=True))
        return dict(answers[0])

    def _tell_up(self, is_up: bool) -> None:
        self.is_up = is_up
        self._news.set()
        self._news = trio.Event()

    async def wait_up(self) -> None:
        """Wait until a server is running."""
        while not self.is_up:
            await self._news.wait()

    # -- the server ------------------------------------------------------------------------------

    def _config(self) -> Config:
        return Config(
            storage=StorageConfig(data_dir=Path(self.disk.root)),
            server=ServerConfig(watch_files=True, max_answer_chars=0, tools="full"),
            index=IndexConfig(watch_mode=typing.cast(Any, self.plan.watch_mode)),
        )

    async def _keep_serving(self) -> None:
        random = self.chance.of("server")
        while not self.is_ending:
            life = Life(self.lives)
            self.lives += 1
            self.life = life
            self.trace("start", life.number)
            await self._live(life)
            self.trace("end", life.number)
            if self.life is life:
                self.life = None
            if not self.is_ending:
                await trio.sleep(random.random() * 10)

    async def _live(self, life: Life) -> None:
        PROCESS.set(life)
        try:
            with life.scope:
                async with running_server(self._config(), clock=self.clock.wall) as server:
                    life.server = server
                    life.front = make_front(server)
                    async with trio.open_nursery() as nursery:
                        life.nursery = nursery
                        for listener in self.listeners:
                            nursery.start_soon(self._guarded, self._listen, listener, life)
                        self._tell_up(True)
                        await life.stopping.wait()
                        server.get(Broadcaster).close()
                        life.gone.set()
                        nursery.cancel_scope.cancel()
        except BaseException as failure:
            if not life.is_dead and not self._is_fault(failure):
                raise
            self.trace("died", type(failure).__name__)
        finally:
            self._tell_up(False)
            life.gone.set()
            life.ended.set()
            if life.is_dead and life.stores is not None:
                self._close_quietly(life.stores)
            PROCESS.set(None)

    def _is_fault(self, failure: BaseException) -> bool:
        """Return whether the process may end with this failure because the disk failed recently."""
        if isinstance(failure, BaseExceptionGroup):
            return all(self._is_fault(one) for one in failure.exceptions)
        kinds = (OSError, apsw.Error, StorageFailed, trio.Cancelled)
        return self.had_faults and isinstance(failure, kinds)

    def _close_quietly(self, stores: Stores) -> None:
        """Close the files of a dead process. This must not affect the current disk."""
        with self.disk.outside(), suppress(Exception):
            self.disk.is_muted = True
            try:
                close_stores(stores)
            finally:
                self.disk.is_muted = False

    async def _listen(self, listener: Listener, life: Life) -> None:
        PROCESS.set(life)
        while True:
            await listener.listen(life.front)
            await trio.sleep(listener.random.random() * 3)

    def crash(self, *, is_power: bool) -> None:
        """End the process, or the whole machine."""
        life = self.life
        if life is None or life.is_dead:
            return
        life.is_dead = True
        old = self.disk.root
        target = self.folder / str(self.take_number())
        self._tell_up(False)
        if is_power:
            for person in self.people:
                person.give_up()
            kind = self.disk.cut_power(target)
            self.ledger.lose_power()
            self.trace("power loss", kind)
        else:
            self.disk.kill(target)
            with self.disk.outside():
                for person in self.people:
                    person.move_over(old, self.disk.root)
            self.trace("kill")
        life.gone.set()
        life.scope.cancel()

    # -- the run ---------------------------------------------------------------------------------

    async def _guarded(self, work: Callable[..., Any], *given: Any) -> None:
        """Run one party. An exception in it ends the whole run at once, like a kill."""
        try:
            await work(*given)
        except Exception as failure:  # noqa: BLE001 - whatever it is, it is what the seed came to
            self._fail(failure)

    def _fail(self, failure: BaseException) -> None:
        if self.problem is None:
            self.problem = failure
            self.trace("failed", type(failure).__name__)
        self.is_ending = self.is_winding_down = True
        if self.life is not None:
            self.life.is_dead = True
            self.life.gone.set()
            self.life.scope.cancel()
        self._root.cancel()

    async def run(self) -> None:
        """Run the whole seed. Raise `Broken` if a promise is broken. Raise any other error unchanged."""
        with self._root:
            await self._guarded(self._run)
        if self.problem is not None:
            raise self.problem

    async def _run(self) -> None:
        for number in range(2):
            self.listeners.append(
                Listener(self.chance.of(f"listener {number}"), self.plan.weather, on_event=self._hear)
            )
        self.people += [
            Person(self, self.chance.of(f"person {number}"), self.plan.habits, self.plan.think * 2)
            for number in range(self.plan.people)
        ]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._guarded, self._keep_serving)
            with trio.fail_after(600):
                await self.wait_up()
            async with trio.open_nursery() as parties:
                for number in range(self.plan.agents):
                    agent = Agent(
                        self,
                        f"agent-{number}",
                        self.chance.of(f"agent {number}"),
                        self.plan.think,
                        self.plan.weights,
                    )
                    parties.start_soon(self._guarded, agent.work)
                for person in self.people:
                    parties.start_soon(self._guarded, person.work)
                parties.start_soon(self._have_trouble)
                parties.start_soon(self._have_faults)
                await trio.sleep(self.plan.seconds)
                for at, length in self.plan.lapses:
                    del at
                    self.trace("sleep", length)
                    self.clock.now += length  # all deadlines pass at once, as after the sleep of a laptop
                    await trio.sleep(5)
                self.is_winding_down = True
            self.disk.faults.is_on = False
            self.disk.crash_at = None
            await settle(self)
            await stop(self)
            nursery.cancel_scope.cancel()

    async def _have_trouble(self) -> None:
        for crash in self.plan.crashes:
            await trio.sleep_until(crash.at)
            if crash.calls is None:
                self.crash(is_power=crash.is_power)
            else:
                self.disk.crash = functools.partial(self.crash, is_power=crash.is_power)
                self.disk.crash_at = self.disk.asked + crash.calls

    async def _have_faults(self) -> None:
        for begin, end in self.plan.fault_spans:
            await trio.sleep_until(begin)
            self.disk.faults.is_on = self.had_faults = True
            self.trace("faults begin")
            await trio.sleep_until(end)
            self.disk.faults.is_on = False
            self.trace("faults end")

    async def call_undisturbed(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool while nothing disturbs the server. Return its answer."""
        while True:
            with suppress(Gone):
                return await self.call(tool, **arguments)
