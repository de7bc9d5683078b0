"""A `lithos serve` process on a data directory, and what the kernel says of its memory."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import frozen

from bench.corpus import generate

MIB = 1024 * 1024
PATIENCE = 900.0
STOP_PATIENCE = 30.0
#: Seconds after which a start's work in the background has begun for certain, and may take at most; the share
#: of a processor below which it is over.
SETTLING, SETTLED_WITHIN, SETTLED = 3.0, 60.0, 0.1


@frozen
class Serving:
    """A running server; `listening` and `searchable` are seconds since the process was started.

    The server listens once full text covers every note; it is searchable once meaning does too.
    """

    process: subprocess.Popen[str]
    host: str
    port: int
    listening: float
    searchable: float

    def resident(self) -> float:
        """Resident memory in MiB."""
        return self._status("VmRSS")

    def anonymous(self) -> float:
        """Resident memory in MiB without pages of files, which come and go as the kernel likes."""
        return self._status("RssAnon")

    def peak(self) -> float:
        """The most memory that was ever resident, in MiB."""
        return self._status("VmHWM")

    def processor_seconds(self) -> float:
        """Processor time used so far; unlike a latency it does not grow with what else the machine does."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def settle(self) -> None:
        """Wait until a start is over: a second after it listens a server looks at all files once more."""
        deadline = time.monotonic() + SETTLED_WITHIN
        time.sleep(SETTLING)
        used = self.processor_seconds()
        while time.monotonic() < deadline:
            time.sleep(1)
            before, used = used, self.processor_seconds()
            if used - before < SETTLED:
                return

    def _status(self, field: str) -> float:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return round(int(line.split()[1]) * 1024 / MIB, 1)
        raise LookupError(field)


@contextmanager
def data_directory(notes: int, seed: int = 7, given: Path | None = None) -> Iterator[Path]:
    """The given one, or a fresh one with a corpus that no server has seen, which is removed afterwards."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="lithos-bench-") as folder:
        data = Path(folder)
        generate(data / "knowledge", notes, seed=seed)
        os.sync()  # the corpus is not what is measured
        yield data


def installed_environment() -> dict[str, str]:
    """This process's environment, in which modules are compiled once, as an installation has them.

    Where Python may write no bytecode, each start compiles all of Lithos: 0.4 s of processor time.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment.setdefault("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir()) / "lithos-bench-bytecode"))
    return environment


#: The command of the `lithos` that is first on the module path, whatever folder this program runs in:
#: installed scripts know the entry point of one revision only.
LITHOS: Final = (sys.executable, "-P", "-m", "lithos")


@contextmanager
def launched(
    data: Path,
    environment: Mapping[str, str] | None = None,
    patience: float = PATIENCE,
    *,
    program: Sequence[str] = (),
    pass_fds: Sequence[int] = (),
) -> Iterator[tuple[subprocess.Popen[str], str, float]]:
    """Start `lithos serve` on a free port; its process, its address, and the `perf_counter` of its start.

    Entered when it listens, stopped at the end of the block. Embeddings are those of the static tier, unless
    the environment says otherwise, wherever onnxruntime is installed. A server that does not listen within
    `patience` seconds is killed, which ends in `SystemExit`. `program` runs in place of `lithos`, with these
    descriptors open.
    """
    command = program or LITHOS
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "-d", str(data), "--json", "serve", "-t", "http", "-p", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        pass_fds=pass_fds,
        # A benchmark wants whole lists.
        env={
            "LITHOS_SEARCH__TIER": "static",
            "LITHOS_SERVER__MAX_ANSWER_CHARS": "0",
            "LITHOS_SERVER__ANSWERS": "full",
            **installed_environment(),
            **(environment or {}),
        },
    )
    too_late = threading.Timer(patience, process.kill)
    too_late.daemon = True
    too_late.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        too_late.cancel()
        if not line:
            raise SystemExit(
                f"The server ended before it listened. See why: {shlex.join(command)} -d DIR serve"
            )
        yield process, json.loads(line)["url"], began
    finally:
        too_late.cancel()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def serving(
    data: Path, environment: Mapping[str, str] | None = None, patience: float = PATIENCE
) -> Iterator[Serving]:
    """Serve `data` on a free port until the block ends; entered when everything is searchable.

    Raises `TimeoutError` when that takes more than `patience` seconds.
    """
    with launched(data, environment, patience) as (process, address, began):
        url = urlsplit(address)
        listening = time.perf_counter() - began
        assert url.hostname is not None
        assert url.port is not None
        searchable = wait_searchable(url.geturl(), began, patience)
        yield Serving(process, url.hostname, url.port, round(listening, 3), round(searchable, 3))


def wait_searchable(url: str, began: float, patience: float = PATIENCE) -> float:
    """Ask `/health` until the model has seen every note; the polling is part of the figure (20 ms)."""
    while time.perf_counter() - began < patience:
        with urllib.request.urlopen(f"{url}/health") as response:
            health: dict[str, Any] = json.load(response)
        if health["components"]["embedding_model"]["status"] != "warming":
            return time.perf_counter() - began
        time.sleep(0.02)
    raise TimeoutError("the notes did not become searchable")
