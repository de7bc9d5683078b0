"""The memory tools that programs pass to the Anthropic SDK: `tools=[LithosMemory(...)]`.

If the SDK is installed, they are subclasses of its abstract memory tools. Without it they have the same
methods, so a program with its own loop can call them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anyio.to_thread import run_sync

from lithos.memory_tool.folder import FolderStore
from lithos.memory_tool.memory import Argument, Memory
from lithos.memory_tool.refusals import Refusal
from lithos.memory_tool.sdk import class_of_sdk
from lithos.memory_tool.server import CALLER, FOLDER, ServerStore

if TYPE_CHECKING:
    _ToolError = Exception
    _Tool = object
    _AsyncTool = object
else:
    _ToolError = class_of_sdk("ToolError", Exception)
    _Tool = class_of_sdk("BetaAbstractMemoryTool", object)
    _AsyncTool = class_of_sdk("BetaAsyncAbstractMemoryTool", object)

_TYPE: Final = {"type": "memory_20250818", "name": "memory"}


class MemoryToolError(_ToolError):
    """A command was refused. The SDK sends the message to the model with `is_error`."""


def _make_memory(
    path: str | Path | None, url: str | None, token: str | None, agent: str, folder: str
) -> Memory:
    if (path is None) == (url is None):
        raise ValueError("Give either path, a folder, or url, the address of a running Lithos server.")
    return Memory(
        FolderStore(Path(path)) if path is not None else ServerStore(str(url), token, agent, folder)
    )


def _definition(cache_control: Mapping[str, Any] | None) -> dict[str, Any]:
    return _TYPE if cache_control is None else {**_TYPE, "cache_control": dict(cache_control)}


def _run(memory: Memory, command: object, name: str | None = None) -> str:
    """Carry out a command, which is an object of the SDK or a mapping. Raise `MemoryToolError`."""
    argument: Argument = command.get if isinstance(command, Mapping) else partial(_attribute, command)
    try:
        return memory.run(name or str(argument("command")), argument)
    except Refusal as refusal:
        raise MemoryToolError(str(refusal)) from refusal


def _attribute(command: object, name: str) -> Any:
    return getattr(command, name, None)


def _clear(memory: Memory) -> str:
    try:
        return memory.clear()
    except Refusal as refusal:
        raise MemoryToolError(str(refusal)) from refusal


class LithosMemory(_Tool):
    """Memory tool for `client.beta.messages.tool_runner`. Its methods block.

    `path` keeps the files in a folder. `url` keeps them as notes of a running server, with versions, in its
    `folder`. `token` is the token of the server and `agent` the author of the notes.
    """

    name = "memory"

    def __init__(
        self,
        *,
        path: str | Path | None = None,
        url: str | None = None,
        token: str | None = None,
        agent: str = CALLER,
        folder: str = FOLDER,
        cache_control: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._memory = _make_memory(path, url, token, agent, folder)
        self._definition = _definition(cache_control)

    def to_dict(self) -> dict[str, Any]:
        """Return the definition of the tool for a request."""
        return dict(self._definition)

    def call(self, input: object) -> str:
        """Carry out the `input` of a tool use, a mapping with `command`. Raise `MemoryToolError`."""
        return _run(self._memory, input)

    def execute(self, command: object) -> str:
        """Carry out a command object of the SDK. Raise `MemoryToolError`."""
        return _run(self._memory, command)

    def view(self, command: object) -> str:
        """Return the numbered lines of a file, or the list of a directory."""
        return _run(self._memory, command, "view")

    def create(self, command: object) -> str:
        """Create a file."""
        return _run(self._memory, command, "create")

    def str_replace(self, command: object) -> str:
        """Replace a text that occurs once in a file."""
        return _run(self._memory, command, "str_replace")

    def insert(self, command: object) -> str:
        """Insert lines into a file."""
        return _run(self._memory, command, "insert")

    def delete(self, command: object) -> str:
        """Delete a file, or a directory with its files."""
        return _run(self._memory, command, "delete")

    def rename(self, command: object) -> str:
        """Rename or move a file or a directory."""
        return _run(self._memory, command, "rename")

    def clear_all_memory(self) -> str:
        """Delete all files."""
        return _clear(self._memory)


class AsyncLithosMemory(_AsyncTool):
    """Memory tool for the asynchronous client. Commands run in a worker thread, under asyncio or Trio."""

    name = "memory"

    def __init__(
        self,
        *,
        path: str | Path | None = None,
        url: str | None = None,
        token: str | None = None,
        agent: str = CALLER,
        folder: str = FOLDER,
        cache_control: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._memory = _make_memory(path, url, token, agent, folder)
        self._definition = _definition(cache_control)

    def to_dict(self) -> dict[str, Any]:
        """Return the definition of the tool for a request."""
        return dict(self._definition)

    async def call(self, input: object) -> str:
        """Carry out the `input` of a tool use, a mapping with `command`. Raise `MemoryToolError`."""
        return await run_sync(_run, self._memory, input)

    async def execute(self, command: object) -> str:
        """Carry out a command object of the SDK. Raise `MemoryToolError`."""
        return await run_sync(_run, self._memory, command)

    async def view(self, command: object) -> str:
        """Return the numbered lines of a file, or the list of a directory."""
        return await run_sync(_run, self._memory, command, "view")

    async def create(self, command: object) -> str:
        """Create a file."""
        return await run_sync(_run, self._memory, command, "create")

    async def str_replace(self, command: object) -> str:
        """Replace a text that occurs once in a file."""
        return await run_sync(_run, self._memory, command, "str_replace")

    async def insert(self, command: object) -> str:
        """Insert lines into a file."""
        return await run_sync(_run, self._memory, command, "insert")

    async def delete(self, command: object) -> str:
        """Delete a file, or a directory with its files."""
        return await run_sync(_run, self._memory, command, "delete")

    async def rename(self, command: object) -> str:
        """Rename or move a file or a directory."""
        return await run_sync(_run, self._memory, command, "rename")

    async def clear_all_memory(self) -> str:
        """Delete all files."""
        return await run_sync(_clear, self._memory)
