"""Real server under a workload.

The server is paused, killed and restarted, and its files are edited during this time.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import trio
from attrs import define, field, frozen

from tests.e2e.clients import Gone, WireClient
from tests.e2e.process import Lithos, start_lithos
from tests.linearizability.models import OUTSIDE_COUNTS
from tests.linearizability.workload import Workload

CLIENTS = 5
#: Approximate number of operations in one round.
OPERATIONS = 120
#: Seconds after which a client stops waiting for an answer. A server pause lasts twice or half this time.
PATIENCE = 0.8
#: Maximum seconds for half a round.
ROUND_LIMIT = 60.0
#: Average seconds between two manual edits, and maximum seconds between the steps of an in-place edit.
EDIT_EVERY = 0.15
STEP_TIME = 0.03


@frozen
class Checked:
    """Counts of the checked histories, and the problems found in them."""

    histories: int = 0
    operations: int = 0
    lost: int = 0
    saves: int = 0
    kills: int = 0
    problems: tuple[str, ...] = ()

    def __add__(self, other: Checked) -> Checked:
        return Checked(
            self.histories + other.histories,
            self.operations + other.operations,
            self.lost + other.lost,
            self.saves + other.saves,
            self.kills + other.kills,
            self.problems + other.problems,
        )

    @classmethod
    def of(cls, workload: Workload, kills: int) -> Checked:
        history = workload.history
        keys = {operation.key for operation in history.operations}
        saves = sum(operation.name == "outside" for operation in history.operations)
        return cls(len(keys), len(history.operations), history.lost, saves, kills, tuple(workload.problems()))

    def __str__(self) -> str:
        return (
            f"{self.histories} histories of one object each, {self.operations} operations, {self.lost} of "
            f"them without an answer, {self.saves} saves by another program, {self.kills} kills: "
            f"{len(self.problems)} not linearizable"
        )


@define(eq=False)
class Campaign:
    """A data directory whose server is started and killed again and again."""

    data: Path
    seed: int
    edits: bool = True
    outside_counts: bool = OUTSIDE_COUNTS
    workload: Workload = field(init=False)
    _random: Random = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._random = Random(self.seed)
        self.workload = Workload(Random(f"work {self.seed}"), self.outside_counts)
        self.data.mkdir(parents=True, exist_ok=True)

    async def run(self, rounds: int, operations: int) -> Checked:
        """Run several rounds.

        Each round starts a server. After at least a number of operations, the server is killed.
        """
        for number in range(rounds):
            server = await trio.to_thread.run_sync(start_lithos, self.data)
            try:
                if number == 0:
                    async with WireClient.open(server.address) as client:
                        await self.workload.prepare(client.call)
                await self._round(server, operations)
            finally:
                server.close()
        return Checked.of(self.workload, rounds)

    async def _round(self, server: Lithos, operations: int) -> None:
        """Let all clients work. Pause the server in the middle of the round.

        In a random half of the rounds, clients do not wait for the end of the pause.
        """
        gives_up = self._random.random() < 0.5
        self.workload.patience = PATIENCE if gives_up else 60.0
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as clients:
                if self.edits:
                    nursery.start_soon(self._edit)
                for number in range(CLIENTS):
                    clients.start_soon(self._work, f"c{number}", server)
                clients.start_soon(
                    self._disturb, server, operations, 2 * PATIENCE if gives_up else PATIENCE / 2
                )
            nursery.cancel_scope.cancel()

    async def _work(self, client: str, server: Lithos) -> None:
        """Make calls until the server ends. After each lost answer, use a new connection."""
        while server.process.poll() is None:
            try:
                async with WireClient.open(server.address) as wire:
                    await self.workload.work(client, wire.call)
            except Gone:
                await trio.sleep(0.01)

    async def _disturb(self, server: Lithos, operations: int, pause: float) -> None:
        """Pause the server and kill it later. Operations are in progress both times."""
        await self._until(self._random.randrange(operations // 4, operations // 2))
        server.process.send_signal(signal.SIGSTOP)
        await trio.sleep(pause)
        server.process.send_signal(signal.SIGCONT)
        await self._until(self._random.randrange(operations // 2, operations))
        await trio.sleep(self._random.uniform(0, 0.02))
        await trio.to_thread.run_sync(server.kill)

    async def _until(self, operations: int) -> None:
        """Wait until this number of additional operations is recorded."""
        history = self.workload.history.operations
        wanted = len(history) + operations
        with trio.fail_after(ROUND_LIMIT):
            while len(history) < wanted:
                await trio.sleep(0.005)

    async def _edit(self) -> None:
        knowledge = self.data / "knowledge"
        while True:
            await trio.sleep(self._random.uniform(0, 2 * EDIT_EVERY))
            # In-place saves are made only if the server counts their steps as versions.
            steps = self.workload.save(
                knowledge, in_place=self.outside_counts and self._random.random() < 0.5
            )
            with trio.CancelScope(shield=True):
                for step in steps:
                    await trio.sleep(self._random.uniform(0, STEP_TIME))
                    step()


async def run_campaigns(
    folder: Path, first: int, is_enough: Callable[[Checked], bool], **more: Any
) -> Checked:
    """Run campaigns with increasing seeds until `is_enough` returns True or a campaign finds a problem."""
    checked = Checked()
    seed = first
    while not checked.problems and not is_enough(checked):
        checked += await Campaign(folder / f"data-{seed}", seed, **more).run(rounds=3, operations=OPERATIONS)
        seed += 1
    return checked
