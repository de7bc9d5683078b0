"""Thread that polls `/health` without a break and measures the slowest answer.

Time in which a thread waits for a processor that other programs use is subtracted. Linux counts this time for
each thread (`schedstat`). On other systems, the whole time counts.
"""

from __future__ import annotations

import http.client
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.e2e.process import Lithos

#: Maximum seconds until `/health` answers, whatever else the server does (issue 11, defect 4).
PATIENCE: Final = 1.0
#: Seconds between an answer and the next request.
PAUSE: Final = 0.02
_BROKEN: Final = 120.0


def _queued(threads: Path) -> dict[str, float]:
    """Return the seconds that each thread of a process has waited for a processor."""
    seconds: dict[str, float] = {}
    with suppress(OSError):
        for thread in threads.iterdir():
            with suppress(OSError, ValueError, IndexError):  # the thread has ended, or it has no such file
                seconds[thread.name] = int((thread / "schedstat").read_text().split()[1]) / 1e9
    return seconds


class HealthPoll:
    """Poller that measures the slowest answer: `with HealthPoll(server) as poll: ...; poll.slowest()`.

    The measurement begins with the first answer. A server that is starting does not answer until its code is
    loaded.
    """

    def __init__(self, server: Lithos) -> None:
        self._address = server.address
        self._server = str(server.process.pid)
        self._own = ""
        self._began, self._done = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._slowest = 0.0
        self.answers = 0

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._began.wait(_BROKEN)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join(_BROKEN)

    def slowest(self) -> float:
        """Return the seconds of the slowest answer since the last call. Reset the measurement."""
        slowest, self._slowest = self._slowest, 0.0
        return slowest

    def _lost(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return the total waiting times for a processor, for the threads of the server and of the test."""
        return _queued(Path(f"/proc/{self._server}/task")), _queued(Path("/proc/self/task"))

    def _waited(self, began: float, before: tuple[dict[str, float], dict[str, float]]) -> float:
        """Return seconds since `began` without waiting times. Only one other thread can delay the server."""
        seconds = time.monotonic() - began
        after = self._lost()
        server, own = ({name: now[name] - was.get(name, 0.0) for name in now}
                       for now, was in zip(after, before, strict=True))  # fmt: skip
        main = server.pop(self._server, 0.0)
        return seconds - main - max(server.values(), default=0.0) - own.get(self._own, 0.0)

    def _run(self) -> None:
        self._own = str(threading.get_native_id())
        connection = http.client.HTTPConnection(*self._address, timeout=_BROKEN)
        connection.request("GET", "/health")
        connection.getresponse().read()
        self._began.set()
        while not self._done.wait(PAUSE):
            before, began = self._lost(), time.monotonic()
            connection.request("GET", "/health")
            connection.getresponse().read()
            self._slowest = max(self._slowest, self._waited(began, before))
            self.answers += 1
        connection.close()
