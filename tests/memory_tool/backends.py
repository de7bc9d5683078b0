"""The memory tool on a folder and on a running server. Commands block, so the server has its own thread."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio
from attrs import evolve, frozen

from lithos.app.front import serve_front
from lithos.memory_tool import LithosMemory, MemoryToolError
from tests.server.running import SETTINGS, tokens_known_soon
from tests.servers import Answer, Lithos, serving

#: Maximum number of bytes of a request. A usual server has the same limit.
MOST_BYTES: Final = 9_000_000
#: Stores of the memory tool: a folder, a data directory of a server, and a vault of a server.
BACKENDS: Final = ("folder", "data", "vault")
_numbers = itertools.count()


@frozen
class ServedMemory:
    """A running server, and memory tools whose notes are below a folder of their own."""

    lithos: Lithos
    url: str
    _shutdown: trio.Event
    _token: trio.lowlevel.TrioToken

    def call(self, tool: str, **arguments: Any) -> Answer:
        """Call a tool of the server as another agent does."""
        answer: Answer = trio.from_thread.run(
            lambda: self.lithos.call(tool, **arguments), trio_token=self._token
        )
        return answer

    def stop(self) -> None:
        """Let the server end."""
        self._token.run_sync_soon(self._shutdown.set)


@contextmanager
def served(
    data: Path, *, vault: bool, auth_token: str | None = None, **sections: Any
) -> Iterator[ServedMemory]:
    """Run a server in another thread. Its answers are compact, as they are by default."""
    started: list[ServedMemory] = []
    ready = threading.Event()
    failures: list[BaseException] = []

    async def run() -> None:
        storage = {"vault": True} if vault else {}
        given = {"server": {"answers": "compact"}, "storage": storage} | sections
        async with tokens_known_soon(), serving(data, **given) as lithos, trio.open_nursery() as nursery:
            shutdown = trio.Event()
            settings = evolve(SETTINGS, max_body_bytes=MOST_BYTES, auth_token=auth_token)
            host, port = await nursery.start(partial(serve_front, settings, lithos.server, shutdown))
            token = trio.lowlevel.current_trio_token()
            started.append(ServedMemory(lithos, f"http://{host}:{port}", shutdown, token))
            ready.set()

    def target() -> None:
        try:
            trio.run(run)
        except BaseException as failure:  # noqa: BLE001 - raised again by the other thread
            failures.append(failure)
        finally:
            ready.set()

    thread = threading.Thread(target=target)
    thread.start()
    ready.wait()
    try:
        if started:
            yield started[0]
    finally:
        if started:
            started[0].stop()
        thread.join()
    if failures:
        raise failures[0]


#: Return another memory tool with the same files, as another program makes it.
Make = Callable[[], LithosMemory]


def fresh_folder() -> str:
    """Return a folder of notes that no other test uses."""
    return f"memory/api{next(_numbers)}"


def ask(memory: LithosMemory, command: str, path: str = "/memories", **more: Any) -> str:
    """Return the answer to a command, which must be accepted."""
    given = more if command == "rename" else {"path": path} | more
    answer = memory.call({"command": command} | given)
    assert isinstance(answer, str)
    return answer


def refused(memory: LithosMemory, command: str, path: str = "/memories", **more: Any) -> str:
    """Return the message of a command that must be refused."""
    try:
        answer = ask(memory, command, path, **more)
    except MemoryToolError as refusal:
        return str(refusal)
    raise AssertionError(answer)


def text_of(memory: LithosMemory, path: str) -> str:
    """Return the lines of a file as they are viewed, without their numbers."""
    _, *rows = ask(memory, "view", path).split("\n")
    return "\n".join(row.partition("\t")[2] for row in rows)
