"""Any sequence of commands gets the same answers in a folder, on a server and from the SDK's own tool."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.memory_tool import LithosMemory, MemoryToolError
from tests.memory_tool.backends import ServedMemory, fresh_folder
from tests.memory_tool.test_transcript import comparable

pytestmark = pytest.mark.needs("memory_tool")

Command = dict[str, Any]
PATHS = st.sampled_from(["/memories/a.md", "/memories/b.txt", "/memories/d/c.md", "/memories/d/e.xml"])
LINES = st.sampled_from(["a", "b", "ab", "# a", "- [ ] b", "", "  a", "é☕", "| a |", "```", "---", "a: b"])
#: Texts end like those of editors. Other ends are in `test_transcript.py`.
TEXTS = st.lists(LINES, max_size=5).map(lambda lines: "\n".join([*lines, "end"]) + "\n")
PARTS = st.sampled_from(["a", "b", "a\n", "\n\n", "ab\nend", "end", "zz", "# a\n", "☕"])
NUMBERS = st.integers(min_value=-1, max_value=7)


def use(command: str, **more: st.SearchStrategy[Any]) -> st.SearchStrategy[Command]:
    return st.fixed_dictionaries({"command": st.just(command)} | more)


COMMANDS = st.one_of(
    use("create", path=PATHS, file_text=TEXTS),
    use("str_replace", path=PATHS, old_str=PARTS, new_str=LINES),
    use("insert", path=PATHS, insert_line=NUMBERS, insert_text=LINES),
    use("delete", path=PATHS),
    use("rename", old_path=PATHS, new_path=PATHS),
    use("view", path=PATHS, view_range=st.none() | st.just([2, -1])),
    use("view", path=st.sampled_from(["/memories", "/memories/d"])),
)
#: A file that no command names, so that its directory stays. A server has no empty directories.
FIRST = [
    {"command": "create", "path": "/memories/d/keep.md", "file_text": "kept\n"},
    {"command": "create", "path": "/memories/a.md", "file_text": "a\nb\nend\n"},
]


def answers(call: Callable[[Command], str], refusal: type[Exception], commands: list[Command]) -> list[str]:
    found = []
    for command in [*FIRST, *commands]:
        try:
            found.append(comparable(call(command)))
        except refusal as error:
            found.append(f"refused: {error}")
    return found


@given(commands=st.lists(COMMANDS, max_size=12))
def test_folder_and_server_give_the_same_answers(data_server: ServedMemory, commands: list[Command]) -> None:
    """behaviour 326"""
    server = LithosMemory(url=data_server.url, folder=fresh_folder())
    with TemporaryDirectory() as path:
        folder = LithosMemory(path=path)
        expected = answers(folder.call, MemoryToolError, commands)
    assert answers(server.call, MemoryToolError, commands) == expected


@pytest.mark.skipif(find_spec("anthropic") is None, reason="the Anthropic SDK is not installed")
@given(commands=st.lists(COMMANDS, max_size=20))
def test_folder_and_sdk_give_the_same_answers(commands: list[Command]) -> None:
    with TemporaryDirectory() as path:
        theirs = import_module("anthropic.tools").BetaLocalFilesystemMemoryTool(f"{path}/theirs")
        expected = answers(theirs.call, import_module("anthropic.lib.tools").ToolError, commands)
        mine = LithosMemory(path=Path(path) / "mine")
        assert answers(mine.call, MemoryToolError, commands) == expected
