"""Every message declares the type of its reply, so `Any` never occurs between callers and actors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from unittest.mock import MagicMock

import pytest

import lithos
from lithos.app.capabilities import CAPABILITIES
from lithos.events.journal.boards import Boards
from lithos.events.journal.messages import CoordinatorMessage
from lithos.kernel.parts import needs_of
from lithos.kernel.values.errors import LithosError
from lithos.kernel.values.messages import Command, Done, Handlers
from lithos.memory.learning.actor import MemoryMessage
from lithos.memory.learning.steps import Steps
from lithos.notes.indexing_messages import IndexMessage
from lithos.notes.writing.actor_writer import WriterMessage
from lithos.notes.writing.messages import Publication
from tests.house import modules, role_of

PACKAGE = Path(lithos.__file__).parent
#: Modules that match an `Any` against the type that a command promises, or that count or close mailboxes.
EXCEPT = {"kernel/actors/mailboxes.py", "kernel/values/messages.py", "server/service_state.py"}
GENERIC = {"Mailbox", "Envelope", "Inbox", "Flush", "Done", "Command"}
GENERIC |= {"TaskCommand", "BoardCommand", "EdgeCommand", "LearningCommand"}
#: Names of functions, parameters and fields that refer to a message or its reply.
SPEAKING = {"message", "messages", "command", "commands", "reply", "replies"}
SPEAKING |= {"submit", "ask", "run", "_ask", "_submit"}


def untyped(source: str) -> Iterator[int]:
    """Yield the line numbers on which a message or a reply is `Any`."""
    for node in ast.walk(ast.parse(source)) if "Any" in source else ():
        written = _type_of_message(node)
        if written is not None and any(ast.unparse(part) == "Any" for part in ast.walk(written)):
            yield written.lineno


def _type_of_message(node: ast.AST) -> ast.expr | None:
    """Return the declared type of a message or a reply, or None if the node does not declare one."""
    if isinstance(node, ast.Subscript):
        return node.slice if ast.unparse(node.value) in GENERIC else None
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.returns if node.name in SPEAKING else None
    if isinstance(node, ast.arg):
        return node.annotation if node.arg in SPEAKING else None
    if isinstance(node, ast.AnnAssign):
        return node.annotation if _name(node.target) in SPEAKING else None
    if isinstance(node, ast.Assign) and _name(node.targets[0]).endswith(("Reply", "Message", "Mailbox")):
        return node.value
    return None


def _name(target: ast.expr) -> str:
    return ast.unparse(target).rpartition(".")[2]


def commands() -> list[type]:
    """Return all classes of Lithos that can be sent to an actor."""
    for module in modules():
        if role_of(module) in ("model", "actor"):
            import_module(module)
    found, waiting = [], [Command]
    while waiting:
        waiting += (below := waiting.pop().__subclasses__())
        found += below
    leaves = {cls for cls in found if _is_current(cls) and not cls.__subclasses__()}
    return sorted(leaves, key=lambda cls: (cls.__module__, cls.__name__))  # independent of the import order


def _is_current(cls: type) -> bool:
    """Return whether a class is the current one.

    attrs creates a second class for slots, and the first class stays in memory.
    """
    is_ours = cls.__module__.startswith("lithos.")
    return is_ours and getattr(import_module(cls.__module__), cls.__name__, None) is cls


def promised(cls: type) -> Any:
    """Return the `R` of a class's `Command[R]`."""
    for base in getattr(cls, "__orig_bases__", ()):
        if get_args(base):
            return get_args(base)[0]
    return promised(cls.__base__) if cls.__base__ is not None else None


def test_no_message_or_reply_has_the_type_any() -> None:
    assert [
        f"{path.relative_to(PACKAGE)}:{line}"
        for room in ("actors", "core", "services", "tools")
        for path in sorted((PACKAGE / room).rglob("*.py"))
        if path.relative_to(PACKAGE).as_posix() not in EXCEPT
        for line in untyped(path.read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize(
    "source",
    [
        "CoordinatorReply = Any", "MemoryMailbox = Mailbox[MemoryMessage, Any]",
        "class A(Command[Any]): pass", "class A(TaskCommand[list[Any]]): pass", "class A:\n    reply: Any",
        "async def submit(self, command: TaskCommand) -> Any: ...",
        "def flush(messages: Sequence[Any]) -> list[object]: ...",
    ],
)  # fmt: skip
def test_untyped_message_is_detected(source: str) -> None:
    assert list(untyped(source))


@pytest.mark.parametrize("cls", commands(), ids=lambda cls: cls.__name__)
def test_command_promises_reply_and_contains_only_its_fields(cls: type) -> None:
    assert promised(cls) is not None
    assert {"Any", "~R"}.isdisjoint(re.findall(r"[~+]?\w+", str(promised(cls))))
    assert cls.__dictoffset__ == 0  # a base without slots would add a dictionary to each command


@pytest.mark.parametrize(
    "union", [CoordinatorMessage, MemoryMessage, IndexMessage, WriterMessage, Publication], ids=str
)
def test_actor_messages_are_commands(union: Any) -> None:
    parts = get_args(union) if get_origin(union) in (Union, UnionType) else (union,)
    assert all(issubclass(get_origin(part) or part, Command) for part in parts)


BOARDS: list[Handlers] = [
    Boards(
        kind(**{name: 1 if hint is int else MagicMock() for name, (hint, _) in needs_of(kind).items()})
        for capability in CAPABILITIES
        for kind in capability.boards
    ).handlers,
    Steps(None, None, None, str)._handlers,  # type: ignore[arg-type]
]


@pytest.mark.parametrize("handlers", BOARDS, ids=["coordinator", "memory"])
def test_handler_takes_its_command_and_returns_the_promised_reply(handlers: Handlers) -> None:
    for command, method in handlers.items():
        hints = get_type_hints(method)
        assert hints["command"] is command
        assert get_origin(hints["return"]) is Done
        replied, promise = get_args(hints["return"])[0], promised(command)
        assert replied in (promise, promise | LithosError), command  # the reply may be a refusal, too


@pytest.mark.parametrize("handlers", BOARDS, ids=["coordinator", "memory"])
def test_every_board_command_has_a_method(handlers: Handlers) -> None:
    families = {base for command in handlers for base in command.__mro__ if base.__name__.endswith("Command")}
    families -= {Command}
    assert {cls for cls in commands() if families & set(cls.__mro__)} == set(handlers)
