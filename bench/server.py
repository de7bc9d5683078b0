"""A `lithos serve` process on a data directory, and its memory as reported by the kernel."""

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
#: Seconds after which the background work of a start has certainly begun, maximum seconds until it ends, and
#: processor share below which it counts as finished.
SETTLING, SETTLED_WITHIN, SETTLED = 3.0, 60.0, 0.1


@frozen
class Serving:
    """A running server. `listening` and `searchable` are in seconds since the start of the process.

    The server listens when full text covers every note. It is searchable when the vectors cover every note.
    """

    process: subprocess.Popen[str]
    host: str
    port: int
    listening: float
    searchable: float

    def resident(self) -> float:
        """Return the resident memory in MiB."""
        return self._status("VmRSS")

    def anonymous(self) -> float:
        """Return the resident memory in MiB without file pages, which the kernel loads and drops at will."""
        return self._status("RssAnon")

    def peak(self) -> float:
        """Return the peak resident memory in MiB."""
        return self._status("VmHWM")

    def processor_seconds(self) -> float:
        """Return the processor time used so far, in seconds.

        Unlike latency, it does not grow with other load.
        """
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def settle(self) -> None:
        """Wait until the start-up work ends. A second after it listens, a server scans all files again."""
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
    """Yield the given directory, or a temporary directory with a corpus that is not indexed yet."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="lithos-bench-") as folder:
        data = Path(folder)
        generate(data / "knowledge", notes, seed=seed)
        os.sync()  # keeps the writes of the corpus out of the measurement
        yield data


def installed_environment() -> dict[str, str]:
    """Return the environment of this process with bytecode caching on, as in an installation.

    Without bytecode files, each start compiles all of Lithos, which takes 0.4 s of processor time.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment.setdefault("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir()) / "lithos-bench-bytecode"))
    return environment


#: Command for the first `lithos` on the module path, independent of the current folder. Installed scripts
#: contain the entry point of only one revision.
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
    """Start `lithos serve` on a free port.

    Yield its process, its address and the `perf_counter` at the start.

    The block starts when the server listens, and the server stops at the end of the block. Embeddings use the
    static tier, unless the environment selects another tier. A server that does not listen within `patience`
    seconds is killed, and `SystemExit` is raised. `program` runs instead of `lithos`, with the descriptors in
    `pass_fds` open.
    """
    command = program or LITHOS
    began = time.perf_counter()
    process = subprocess.Popen(
        [*command, "-d", str(data), "--json", "serve", "-t", "http", "-p", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        pass_fds=pass_fds,
        # The benchmarks need answers with complete lists.
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
                f"The server ended before it listened. To see why, run: {shlex.join(command)} -d DIR serve"
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
    """Serve `data` on a free port. The block starts when all notes are searchable.

    Raises `TimeoutError` if this takes more than `patience` seconds.
    """
    with launched(data, environment, patience) as (process, address, began):
        url = urlsplit(address)
        listening = time.perf_counter() - began
        assert url.hostname is not None
        assert url.port is not None
        searchable = wait_searchable(url.geturl(), began, patience)
        yield Serving(process, url.hostname, url.port, round(listening, 3), round(searchable, 3))


def wait_searchable(url: str, began: float, patience: float = PATIENCE) -> float:
    """Poll `/health` until all notes have vectors.

    The returned time includes the polling interval (20 ms).
    """
    while time.perf_counter() - began < patience:
        with urllib.request.urlopen(f"{url}/health") as response:
            health: dict[str, Any] = json.load(response)
        if health["components"]["embedding_model"]["status"] != "warming":
            return time.perf_counter() - began
        time.sleep(0.02)
    raise TimeoutError("the notes did not become searchable")
