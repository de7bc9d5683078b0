"""Faults and what becomes of them, as a Markdown table: `python -m bench.faults --kills 200 --minutes 2`.

Each row is a fault with what was tried and what was found afterwards; a fault that is not survived is
told with its reason, and the command exits 1. `--only NAME` runs the rows whose name contains it.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import trio
from attrs import frozen

from bench.soak import CLIENTS, run_soak
from tests.e2e.faults import Outcome, storage
from tests.e2e.faults import folder as files
from tests.e2e.faults.copies import backup_under_load
from tests.e2e.faults.kills import kill_again_and_again
from tests.e2e.test_bridge import test_ten_stdio_servers_share_one_owner_and_survive_its_end as ten_bridges
from tests.e2e.test_full_disk import fill_and_heal, small_tmpfs


class Skipped(Exception):
    """The fault cannot be made on this machine; the text says why."""


@frozen
class Fault:
    """A row of the table; `run` gets an empty folder and blocks."""

    name: str
    run: Callable[[Path], Outcome]


def make_faults(kills: int, minutes: float) -> list[Fault]:
    """All rows, in the order of the table."""
    return [
        Fault("kill -9 under mixed load", _in_trio(partial(kill_again_and_again, kills=kills, told=_dot))),
        Fault("note files refuse", _in_trio(storage.note_files_refuse)),
        Fault("databases refuse", _in_trio(storage.databases_refuse)),
        Fault("search indexes refuse", _in_trio(storage.indexes_refuse)),
        Fault("no byte more, no file more", _in_trio(storage.limits_are_reached)),
        Fault("full disk", _fill_disk),
        Fault("volume vanishes and returns", _in_trio(files.volume_vanishes)),
        Fault("files in pieces", _in_trio(files.file_in_pieces)),
        Fault("10,000 touches", _in_trio(files.rapid_touches)),
        Fault("rename storm", _in_trio(files.rename_storm)),
        Fault("rename storm, polling", _in_trio(partial(files.rename_storm, mode="poll"))),
        Fault("strange names, links in circles", _in_trio(files.strange_names)),
        Fault("ten stdio servers on one folder", _run_bridges),
        Fault("backup under load, restore elsewhere", _in_trio(backup_under_load)),
        Fault("soak", partial(_soak, minutes=minutes)),
    ]


def _in_trio(fault: Callable[[Path], Awaitable[Outcome]]) -> Callable[[Path], Outcome]:
    return lambda folder: trio.run(fault, folder)


def _dot(kill: int) -> None:
    if kill % 10 == 0:
        print(f"{kill} kills", file=sys.stderr, flush=True)


def _fill_disk(folder: Path) -> Outcome:
    with small_tmpfs(folder / "disk") as (disk, reason):
        if disk is None:
            raise Skipped(reason)
        written, refused = trio.run(fill_and_heal, disk)
    return Outcome(
        f"{written + refused} writes on a tmpfs that fills up and is emptied again",
        f"{refused} refused with internal_error and the reason, {written} acknowledged and all found, "
        "also after a restart",
    )


def _run_bridges(folder: Path) -> Outcome:
    with (folder / "stderr").open("ab") as errors:
        ten_bridges(folder, errors.fileno())
    return Outcome(
        "10 stdio servers, 200 writes through all of them, kill -9 of the owner",
        "one owner, 9 bridges without indexes; one takes over, no acknowledged write lost, "
        "unanswered calls say that their outcome is unknown",
    )


def _soak(_: Path, minutes: float) -> Outcome:
    soaked = run_soak(60 * minutes)
    assert not soaked.problems(), "; ".join(soaked.problems())
    return Outcome(
        f"{soaked.calls} calls from {CLIENTS} clients in {soaked.minutes} minutes",
        f"no error; {soaked.memory:.0f} MiB, {soaked.slope:+.2f} MiB a minute after the warm-up; "
        f"p99 {soaked.p99:.0f} ms, second half to first {soaked.p99_ratio}",
    )


@contextmanager
def _empty_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lithos-faults-") as folder:
        yield Path(folder)


def run_fault(fault: Fault) -> tuple[bool, str]:
    """Whether it was survived, and its row."""
    began = time.perf_counter()
    try:
        with _empty_folder() as folder:
            outcome = fault.run(folder)
        survived = True
    except Skipped as reason:
        survived, outcome = True, Outcome("nothing", f"skipped: {reason}")
    except Exception as failure:  # noqa: BLE001 - told, and the other faults are tried all the same
        survived, outcome = False, Outcome("", f"**failed**: {_describe(failure)}")
    seconds = time.perf_counter() - began
    return survived, f"| {fault.name} | {outcome.tried} | {outcome.result} | {seconds:.0f} s |"


def _describe(failure: BaseException) -> str:
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return " ".join(f"{type(failure).__name__}: {failure}".split())[:500].replace("|", "\\|")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=2.0, help="of soak")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    chosen = [fault for fault in make_faults(options.kills, options.minutes) if options.only in fault.name]
    if not chosen:
        parser.error(f"no fault has a name with {options.only!r}")
    logging.getLogger("lithos").setLevel(logging.CRITICAL)  # of the servers in this process
    print("| Fault | Tried | Result | Took |\n|---|---|---|---|", flush=True)
    survived = True
    for fault in chosen:
        was_survived, row = run_fault(fault)
        survived &= was_survived
        print(row, flush=True)
    sys.exit(0 if survived else 1)


if __name__ == "__main__":
    main()
