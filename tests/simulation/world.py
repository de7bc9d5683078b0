"""One seed: a server, agents, people, listeners, faults and crashes, for some minutes or hours of virtual time."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import shutil
import typing
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import apsw
import numpy as np
import pytest
import trio
from attrs import define, field, frozen

import lithos.actors.indexing.accurate
import lithos.actors.watching.watcher
import lithos.app
import lithos.app.assembly
from lithos.app import running_server
from lithos.app.server import Server
from lithos.app.stores import Stores, close_stores
from lithos.config.catalogue import Config
from lithos.config.sections import IndexConfig, ServerConfig, StorageConfig
from lithos.core.errors import StorageFailed
from lithos.stores.history.store import HistoryStore
from lithos.stores.indexes.embedder import EmbedderIdentity
from lithos.stores.indexes.fulltext import FulltextIndex
from lithos.stores.notes.values import digest_of
from lithos.tools.contract import arguments as contract_arguments
from tests.simulation.agents import OPERATIONS, Agent
from tests.simulation.disk import Faults, Hearing, SimulatedDisk, attached, make_listening
from tests.simulation.ledger import Broken, Ledger, demand, tokens
from tests.simulation.loop import PROCESS, Chance, Pace, SimulatedClock, Workers, simulated
from tests.simulation.network import Gone, Listener, Weather, call_over_http, make_front
from tests.simulation.people import KINDS, Person

#: Virtual seconds in which a call is answered, whatever the disk does.
PATIENCE = 180.0
#: Virtual seconds after which everything has converged, once people and faults are gone.
SETTLING = 200.0
DIMS = 32
#: Segments of a full-text index with which tantivy begins to merge them.
MERGING = 8


class Embedder:
    """Words at random places of a small space: enough to tell notes apart."""

    identity = EmbedderIdentity("simulated", DIMS, "int8", "0")

    def encode(self, texts: Any, *, one_core: bool = False) -> Any:
        rows = np.zeros((len(texts), DIMS), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[crc32(word.encode()) % DIMS] += 1.0
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(norms > 0, norms, 1)


@frozen
class Crash:
    """An end of the process: at a time, or at one of the next calls after it."""

    at: float
    is_power: bool
    calls: int | None


@frozen
class Plan:
    """What a seed is about; each has only some of the troubles, so that each has the others' room."""

    seconds: float
    agents: int
    people: int
    think: float
    pace: Pace
    weather: Weather
    faults: Faults
    fault_spans: tuple[tuple[float, float], ...]
    crashes: tuple[Crash, ...]
    hearing: Hearing
    watch_mode: str
    reach: float
    #: Times at which the machine sleeps, and for how long.
    lapses: tuple[tuple[float, float], ...]
    weights: dict[str, float]
    habits: dict[str, float]


def make_plan(random: Random, hearing: Random) -> Plan:
    """Draw it."""
    seconds = random.choice((20.0, 40.0, 60.0, 120.0, 300.0))
    crashes = tuple(
        Crash(
            at=random.random() * seconds,
            is_power=random.random() < 0.5,
            calls=random.choice((None, random.randrange(1, 60))),
        )
        for _ in range(random.choice((0, 0, 1, 1, 2)))
    )
    faulty = random.random() < 0.3
    begin = random.random() * seconds
    weights = {name: weight * random.choice((0.0, 1.0, 1.0, 3.0)) for name, weight in OPERATIONS.items()}
    weights["create"] = weights["write"] = 4.0
    weights["task"] = 1.0
    return Plan(
        seconds=seconds,
        agents=random.randrange(1, 6),
        people=random.choice((0, 1, 1, 2)),
        think=max(0.05, seconds / random.choice((10.0, 15.0, 25.0))),
        pace=Pace(
            usual=random.choice((0.0002, 0.002)),
            slow_share=random.choice((0.0, 0.05, 0.3)),
            slow=random.choice((0.02, 0.5)),
            stall_share=random.choice((0.0, 0.0, 0.005)),
        ),
        weather=Weather(
            delay=random.choice((0.001, 0.05)),
            lost_requests=random.choice((0.0, 0.0, 0.05)),
            lost_answers=random.choice((0.0, 0.0, 0.05)),
            direct=random.choice((0.0, 0.5, 1.0)),
            stream_life=random.choice((5.0, 60.0, 10_000.0)),
        ),
        faults=Faults(share=random.choice((0.002, 0.02, 0.2)), short=random.choice((0.0, 0.1))),
        fault_spans=((begin, begin + random.random() * seconds / 3),) if faulty else (),
        crashes=tuple(sorted(crashes, key=lambda crash: crash.at)),
        hearing=Hearing(
            delay=random.choice((0.0, 0.1, 0.4)), loss=random.choice((0.0, 0.0, 0.2, 0.9)), random=hearing
        ),
        watch_mode=random.choice(("auto", "native", "native", "poll")),
        reach=random.choice((0.0, 0.01, 0.1)),
        lapses=((random.random() * seconds, random.choice((60.0, 600.0, 7_200.0))),)
        if random.random() < 0.2
        else (),
        weights=weights,
        habits={kind: random.choice((0.0, 1.0, 3.0)) for kind in KINDS}
        | {"in place": 1.0, "atomic": 1.0, "new": 0.5},
    )


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
class Outcome:
    """What a seed came to."""

    seed: int
    digest: str
    virtual: float
    steps: int
    problem: str | None
    checks: dict[str, int]

    @property
    def line(self) -> str:
        """The one line that replays a failure."""
        return f"python -m tests.simulation --seed {self.seed}"


@define(eq=False)
class World:
    """The parties of one seed, and what they have in common."""

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
        """Something happened: the digest of all of it is the same whenever the seed is run."""
        self.steps += 1
        line = f"{self.clock.now:.6f} {' '.join(map(str, what))}".replace(str(self.folder), "")
        self._hash.update(line.encode())
        if self.tell is not None:
            self.tell(line)

    def token(self, kind: str) -> str:
        """A word that occurs once."""
        self._tokens += 1
        return f"zq{kind}{self._tokens}z"

    def tokens_of(self, text: bytes) -> set[str]:
        """The tokens in a text."""
        return tokens(text)

    def take_number(self) -> int:
        """A number for a title."""
        self.number += 1
        return self.number

    def moved(self, old: str, new: str) -> None:
        """A person renamed a file."""
        for account in self.ledger.notes.values():
            if account.path == old:
                account.path = new
        for token, path in self.ledger.saved.items():
            if path == old:
                self.ledger.saved[token] = new

    def unlinked_save(self, name: str, text: bytes) -> None:
        """A person saved into a file that has no name any more: it must have one of the server's."""
        raise Broken(f"a person saved {sorted(tokens(text))} into {name}, which has no name any more")

    def _hear(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "note.deleted" and data["agent"] in ("watcher", "scan"):
            self.ledger.reborn.add(data["id"])

    def excuse_failure(self, answer: dict[str, Any]) -> None:
        """A tool failed: only faults of the disk and a stop are reasons."""
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
            random.choice(self.people).step()

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool of the server that is up; raises `Gone` when no answer comes."""
        random, weather = self.chance.of("network"), self.plan.weather
        await self._wait_up()
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
            for _ in range(2):  # the machine may sleep for longer than one of them
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

    async def _wait_up(self) -> None:
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
                        server.broadcaster.close()
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
        """Whether the process may end of this: the disk failed a moment ago."""
        if isinstance(failure, BaseExceptionGroup):
            return all(self._is_fault(one) for one in failure.exceptions)
        kinds = (OSError, apsw.Error, StorageFailed, trio.Cancelled)
        return self.had_faults and isinstance(failure, kinds)

    def _close_quietly(self, stores: Stores) -> None:
        """The files of a dead process are closed; nothing of that reaches the disk that lives on."""
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
        """The process, or the machine, is gone."""
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
        """Run a part; what it raises ends everything at once, like a kill."""
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
        """The whole seed; raises `Broken` and whatever else goes wrong."""
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
                await self._wait_up()
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
                    self.clock.now += length  # as a laptop does: all deadlines are over at once
                    await trio.sleep(5)
                self.is_winding_down = True
            self.disk.faults.is_on = False
            self.disk.crash_at = None
            await self._settle()
            await self._stop()
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

    async def _settle(self) -> None:
        """Wait until nothing is left to be done, and check everything."""
        with trio.fail_after(PATIENCE):
            await self._wait_up()
        await trio.sleep(65.0 if self.plan.hearing.loss else 10.0)
        assert self.life is not None
        life = self.life
        server = life.server
        assert server is not None
        until = self.clock.now + SETTLING
        while not self._looks_settled(server) and self.clock.now < until:
            await trio.sleep(5.0)
        with trio.fail_after(PATIENCE):
            await server.searchable()
            await server.catching_up.done.wait()
        self.trace("settled")
        await self._check_indexes(server)
        await self._check_tasks()
        self._check_all(self._read_disk())
        health = await self.call_undisturbed("lithos_stats")
        self.trace("stats", sorted(health))

    def _looks_settled(self, server: Server) -> bool:
        """Whether every file is known as it is, and nothing of the server's own is left beside the notes."""
        known = {entry.path: entry.digest for entry in server.catalogue}
        skipped = server.catalogue.skipped
        files = {path: digest_of(content) for path, content in self._files().items() if path not in skipped}
        return known == files and not self._leftovers() and not server.guard.kept

    async def _stop(self) -> None:
        """An orderly stop; now and then a start after it, which must find all as it was."""
        before = self._files()
        await self._end_life()
        left = self._leftovers()
        # What was displaced in a folder that a person renames is tidied up by the next start.
        demand(not left or self.plan.habits["folder"], f"left behind: {left}")
        journal = self._journal(self._read_disk())
        if left or self.chance.of("server").random() < 0.25:
            with trio.fail_after(PATIENCE):
                await self._wait_up()
            assert self.life is not None
            assert self.life.server is not None
            with trio.fail_after(PATIENCE):
                await self.life.server.searchable()
            await trio.sleep(70.0 if left else 5.0)
            demand(self._files() == before, "a start changed files")
            demand(not self._leftovers(), f"left behind by a start: {self._leftovers()}")
            again = [
                event
                for event in self._journal(self._read_disk())[len(journal) :]
                if event[1].startswith("note.")
            ]
            demand(not again, f"a start told of {again}")
            await self._end_life()
        self.is_ending = True

    async def _end_life(self) -> None:
        life = self.life
        assert life is not None
        life.stopping.set()
        with trio.fail_after(60):
            await life.ended.wait()
        self.trace("stopped")

    def _leftovers(self) -> list[str]:
        knowledge = Path(self.disk.root) / "knowledge"
        return sorted(
            path.relative_to(knowledge).as_posix() for path in knowledge.rglob(".lithos-*") if path.is_file()
        )

    async def call_undisturbed(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """A call whose answer comes."""
        while True:
            with suppress(Gone):
                return await self.call(tool, **arguments)

    async def _check_indexes(self, server: Server) -> None:
        """What tools show of the notes is what is in the folder."""
        knowledge = Path(self.disk.root) / "knowledge"
        files = self._files()
        listed = await self.call_undisturbed("lithos_list", limit=1000)
        paths = {item["path"]: item["id"] for item in listed["items"]}
        # A person may save a note under its old name after an agent moved it.
        doubles = {
            path for path, why in server.catalogue.skipped.items() if why.reason.startswith("DUPLICATE_ID")
        }
        files = {path: content for path, content in files.items() if path not in doubles}
        demand(
            sorted(paths) == sorted(files),
            f"the list has {sorted(paths.keys() - files.keys())} more and {sorted(files.keys() - paths.keys())} less than {knowledge.name}; "
            f"skipped: {dict(server.catalogue.skipped)}, kept: {dict(server.guard.kept)}",
        )
        demand(len(set(paths.values())) == len(paths), "an id is there twice")
        with_word = {ident for path, ident in paths.items() if self.WORD.encode() in files[path]}
        for mode in ("fulltext", "semantic", "hybrid"):
            answer = await self.call_undisturbed("lithos_search", query=self.WORD, mode=mode, limit=1000)
            demand(
                "results" in answer and answer.keys() == {"results"},
                f"{mode} is not what it should be: {answer}",
            )
            found = {row["id"] for row in answer["results"]}
            demand(
                found <= set(paths.values()), f"{mode} finds {found - set(paths.values())}, which are gone"
            )
            if mode != "semantic":
                demand(with_word <= found, f"{mode} does not find {with_word - found}")
        for path, ident in sorted(paths.items()):
            content = files[path]
            for token in sorted(tokens(content))[-2:]:
                if token.startswith("zqa") and f"- {token}".encode() in content:
                    continue  # a tag
                answer = await self.call_undisturbed("lithos_search", query=token, mode="fulltext")
                found_ids = {row["id"] for row in answer["results"]}
                in_body = token in (await self.call_undisturbed("lithos_read", id=ident))["content"]
                demand(not in_body or ident in found_ids, f"{token} is in {path} and is not found there")
        self.ledger.checks["indexes"] += 1

    async def _check_tasks(self) -> None:
        rows = {row["id"]: row for row in (await self.call_undisturbed("lithos_task_list"))["tasks"]}
        for task in self.ledger.tasks.values():
            demand(task.id in rows, f"the task {task.id} is gone")
            demand(
                task.is_unsure or rows[task.id]["status"] == task.status,
                f"the task {task.id} is {rows[task.id]['status']}, not {task.status}",
            )
            found = [
                row["id"]
                for row in (await self.call_undisturbed("lithos_finding_list", task_id=task.id))["findings"]
            ]
            lost = [one for one in task.findings if found.count(one) != 1]
            demand(not lost, f"findings {lost} are not there once")
        if self.edges:
            there = {
                row["edge_id"]
                for row in (await self.call_undisturbed("lithos_edge_list", namespace="n"))["edges"]
            }
            demand(self.edges <= there, f"edges are gone: {self.edges - there}")

    def _files(self) -> dict[str, bytes]:
        knowledge = Path(self.disk.root) / "knowledge"
        return {
            path.relative_to(knowledge).as_posix(): path.read_bytes()
            for path in knowledge.rglob("*.md")
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(knowledge).parts)
        }

    def _read_disk(self) -> Path:
        return Path(self.disk.root) / ".lithos"

    def _check_all(self, private: Path) -> None:
        life = self.life
        assert life is not None
        assert life.server is not None
        store = life.server.writer._recorder.store
        assert isinstance(store, HistoryStore)
        versions: dict[tuple[str, int], list[bytes]] = {}
        ids = [str(row[0]) for row in store._reader.execute("SELECT id FROM notes")]
        newest: dict[str, tuple[str, bytes, str]] = {}
        for note in ids:
            for row in store.rows(note, 10_000)[0]:
                content = store.content(note, row.version)
                assert content is not None
                versions.setdefault((note, row.version), []).append(content)
                newest.setdefault(note, (row.path, content, row.op))
        files = self._files()
        for note, (path, content, op) in newest.items():
            # What the history could not take is told, and taken up by the next start.
            if op != "deleted" and not self.had_faults and life.server.catalogue.get(note) is not None:
                demand(files.get(path) == content, f"the newest version of {path} is not what is in its file")
        displaced = [
            path.read_bytes() for path in private.rglob("*") if path.is_file() and "displaced" in str(path)
        ]
        self.ledger.check_texts(versions, files, displaced)
        self.ledger.check_files(files)
        journal = self._journal(private)
        self.ledger.check_events(journal)
        told = {seq: kind for seq, kind, _, _ in journal}
        for listener in self.listeners:
            heard = {seq: kind for seq, kind, _ in listener.heard}
            demand(
                heard.items() <= told.items(),
                f"events were delivered that are not in the journal: {heard.items() - told.items()}",
            )
            missed = [seq for seq in told if seq not in heard]
            demand(not missed, f"events were not delivered: {[(seq, told[seq]) for seq in missed]}")
        self.trace("journal", [(seq - journal[0][0], kind) for seq, kind, _, _ in journal])

    def _journal(self, private: Path) -> list[tuple[int, str, str, dict[str, Any]]]:
        journal = apsw.Connection(
            str(private / "coordination.db"), flags=apsw.SQLITE_OPEN_READONLY, vfs="unix"
        )
        try:
            rows: Any = journal.execute(
                "SELECT seq, type, agent, payload FROM events ORDER BY rowid"
            ).fetchall()
        finally:
            journal.close()
        return [(int(seq), str(kind), str(agent), json.loads(payload)) for seq, kind, agent, payload in rows]


@contextmanager
def _installed(world: World) -> Iterator[None]:
    """The product's parts that are other ones in a simulation."""
    opened = lithos.app.open_stores

    def open_stores(*given: Any) -> Stores:
        stores = opened(*given)
        life = PROCESS.get()
        assert isinstance(life, Life)
        life.stores = stores
        return stores

    commit = FulltextIndex._commit

    def commit_and_merge(self: FulltextIndex, upserts: Any, removals: Any) -> None:
        commit(self, upserts, removals)
        if self._searcher.num_segments < MERGING:
            return
        writer, self._writer = self._writer, None
        assert writer is not None
        writer.wait_merging_threads()  # else the order of hits depends on how far a thread has come
        self._index.reload()
        self._searcher = self._index.searcher()

    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(lithos.app.assembly, "load_embedder", lambda _: Embedder())
        patch.setattr(lithos.actors.indexing.accurate, "is_installed", lambda: False)
        patch.setattr(contract_arguments, "get_type_hints", _HINTS)
        patch.setattr(lithos.actors.watching.watcher, "Listening", make_listening(world.plan.hearing))
        patch.setattr(lithos.app, "open_stores", open_stores)
        patch.setattr(FulltextIndex, "_commit", commit_and_merge)
        stack.enter_context(simulated(world.clock, world.chance, world.workers))
        stack.enter_context(attached(world.disk, world.workers))
        yield


_HINTS = functools.cache(typing.get_type_hints)


def run_seed(seed: int, folder: Path, tell: Callable[[str], object] | None = None) -> Outcome:
    """Run one seed in an empty folder of a file system in memory."""
    logging.getLogger("lithos").setLevel(logging.CRITICAL if tell is None else logging.ERROR)
    world = World(seed, folder / str(seed), tell)
    problem = None
    try:
        with _installed(world):
            trio.run(world.run, clock=world.clock)
    except BaseException as failure:
        if isinstance(failure, KeyboardInterrupt):
            raise
        problem = _describe(failure)
        if tell is not None:
            import traceback  # noqa: PLC0415

            traceback.print_exception(failure)
    finally:
        shutil.rmtree(world.folder, ignore_errors=True)
    return Outcome(
        seed, world._hash.hexdigest(), world.clock.now, world.steps, problem, dict(world.ledger.checks)
    )


def _describe(failure: BaseException) -> str:
    """The first broken invariant, else the first of what was raised."""
    if isinstance(failure, BaseExceptionGroup):
        found = failure.split(Broken)[0]
        return _describe((found or failure).exceptions[0])
    return f"{type(failure).__name__}: {failure}"
