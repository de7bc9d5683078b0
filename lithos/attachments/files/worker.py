"""The process that reads files: `python -m lithos.attachments.files.worker SOCKET MEMORY SERVER`.

The process receives requests with open files over the inherited socket, one at a time. Answers are sent as
lines. Files may be malicious, so the process has few rights: it cannot write files, does not know their
names, and has limited memory and processor time. Its priority is low, and it is killed when its server ends.
The server enforces deadlines, because native code cannot be interrupted. The module imports little, so that
the process starts quickly.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Final

from lithos.attachments.files.worker_answers import FileAnswering, limit, limit_memory
from lithos.attachments.files.worker_protocol import LONGEST_LINE, OUT_OF_MEMORY, ReadingRequest, pack_answer

#: The priority `_NICENESS` lets a newly saved file be read soon on a busy machine. The priority `_LOWEST`
#: applies after `_QUICK` processor seconds, which are only exceeded when a whole vault is read.
_NICENESS, _LOWEST, _QUICK = 10, 19, 1.0
#: Processor seconds of a request after which the process ends even if the server does not end it.
_MOST_SECONDS: Final = 90
_PR_SET_PDEATHSIG: Final = 1
#: Numbers of the system call `ioprio_set`, for which C libraries have no function. Below them: its arguments
#: for "this process" and "idle".
_IOPRIO_SET: Final = {"x86_64": 251, "aarch64": 30}
_THIS_PROCESS, _IDLE = 1, 3 << 13


def main(descriptor: int, memory: int, parent: int) -> None:
    """Serve requests until the server closes the socket."""
    _confine(descriptor, memory)
    _yield_to_others(_NICENESS)
    _die_with(parent)
    server = socket.socket(fileno=descriptor)
    answering = FileAnswering(memory)
    try:
        while (received := _receive(server)) is not None:
            request, file = received
            _limit_time()
            try:
                for answer in answering.answer(request, file):
                    server.sendall(pack_answer(answer))
                    if time.process_time() > _QUICK:
                        _yield_to_others(_LOWEST)
            finally:
                os.close(file)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except OSError:  # the server has closed the socket
        os._exit(0)


def _confine(descriptor: int, memory: int) -> None:
    """Limit the process to bounded memory, its socket, and the files received over the socket."""
    sys.path[:] = [os.path.abspath(each) for each in sys.path]
    sys.dont_write_bytecode = True
    os.chdir("/")
    most = descriptor + 24
    os.closerange(3, descriptor)
    os.closerange(descriptor + 1, max(1_024, most))
    limit(resource.RLIMIT_CORE, 0, 0)
    limit(resource.RLIMIT_FSIZE, 0, 0)
    limit(resource.RLIMIT_NOFILE, most, most)
    limit_memory(memory)


def _yield_to_others(niceness: int) -> None:
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
    if sys.platform == "linux":
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _die_with(parent: int) -> None:
    """Ensure that the process is killed when the server ends. Terminal signals do not reach it."""
    # The process stays in the server's session. Linux divides processor time between sessions, so a process
    # in its own session would get too much despite its low priority.
    with suppress(OSError):
        os.setpgid(0, 0)
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - nothing else here needs it, and the process loads little

        system = ctypes.CDLL(None)
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        number = _IOPRIO_SET.get(os.uname().machine)
        if number is not None and sys.maxsize > 1 << 32:
            system.syscall(number, _THIS_PROCESS, 0, _IDLE)
    if os.getppid() != parent:
        os._exit(0)


def _receive(server: socket.socket) -> tuple[ReadingRequest, int] | None:
    """Return the next request and its file, or None after the last request."""
    line, files, _, _ = socket.recv_fds(server, LONGEST_LINE, 1)
    if not line or not files:
        return None
    while not line.endswith(b"\n"):
        more = server.recv(LONGEST_LINE)
        if not more:
            raise OSError("the server has closed the socket")
        line += more
    return ReadingRequest.from_line(line), files[0]


def _limit_time() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime) + _MOST_SECONDS
    limit(resource.RLIMIT_CPU, most, resource.getrlimit(resource.RLIMIT_CPU)[1])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
