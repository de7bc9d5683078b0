"""Execution of one seed, and its outcome."""

from __future__ import annotations

import logging
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path

import trio
from attrs import define

from tests.simulation.ledger import Broken
from tests.simulation.standins import installed
from tests.simulation.world import World


@define(eq=False)
class Outcome:
    """The result of a seed."""

    seed: int
    digest: str
    virtual: float
    steps: int
    problem: str | None
    checks: dict[str, int]

    @property
    def line(self) -> str:
        """Return the command that replays the seed, as one line of text."""
        return f"python -m tests.simulation --seed {self.seed}"


def run_seed(seed: int, folder: Path, tell: Callable[[str], object] | None = None) -> Outcome:
    """Run one seed in an empty folder on a file system in memory."""
    logging.getLogger("lithos").setLevel(logging.CRITICAL if tell is None else logging.ERROR)
    world = World(seed, folder / str(seed), tell)
    problem = None
    try:
        with installed(world):
            trio.run(world.run, clock=world.clock)
    except BaseException as failure:
        if isinstance(failure, KeyboardInterrupt):
            raise
        problem = _describe(failure)
        if tell is not None:
            traceback.print_exception(failure)
    finally:
        shutil.rmtree(world.folder, ignore_errors=True)
    return Outcome(
        seed, world._hash.hexdigest(), world.clock.now, world.steps, problem, dict(world.ledger.checks)
    )


def _describe(failure: BaseException) -> str:
    """Return a text about the first broken promise, or otherwise about the first raised error."""
    if isinstance(failure, BaseExceptionGroup):
        found = failure.split(Broken)[0]
        return _describe((found or failure).exceptions[0])
    return f"{type(failure).__name__}: {failure}"
