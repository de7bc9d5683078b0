"""The classes for the Anthropic SDK, with and without the SDK."""

from __future__ import annotations

import ast
import json
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

import lithos.memory_tool
from lithos.memory_tool import AsyncLithosMemory, LithosMemory, MemoryToolError
from lithos.memory_tool.sdk import class_of_sdk
from tests.memory_tool.backends import ask, refused

pytestmark = pytest.mark.needs("memory_tool")

with_sdk = pytest.mark.skipif(find_spec("anthropic") is None, reason="the Anthropic SDK is not installed")
USES: list[dict[str, Any]] = [
    {"command": "create", "path": "/memories/a.md", "file_text": "I like coffee.\n"},
    {"command": "view", "path": "/memories/b.md"},
    {"command": "view", "path": "/memories/a.md"},
]


def test_definition_is_that_of_the_api(tmp_path: Path) -> None:
    cached = LithosMemory(path=tmp_path, cache_control={"type": "ephemeral"})
    plain = {"type": "memory_20250818", "name": "memory"}
    assert LithosMemory(path=tmp_path).to_dict() == AsyncLithosMemory(path=tmp_path).to_dict() == plain
    assert cached.to_dict() == plain | {"cache_control": {"type": "ephemeral"}}
    assert LithosMemory(path=tmp_path).name == AsyncLithosMemory(path=tmp_path).name == "memory"


@pytest.mark.parametrize("given", [{}, {"path": "a", "url": "http://127.0.0.1"}])
def test_one_place_is_needed(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="Give either path"):
        LithosMemory(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["", "notes", "file:///notes", "ftp://host/", "127.0.0.1:8765", "http://"])
def test_address_that_is_not_one_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="not an address of a server"):
        LithosMemory(url=url)


@pytest.mark.parametrize("folder", ["..", "a/../..", ".hidden", "a\\b", "%2e%2e"])
def test_folder_outside_the_vault_is_refused(folder: str) -> None:
    with pytest.raises(ValueError, match="is not a folder for notes"):
        LithosMemory(url="http://127.0.0.1:1", folder=folder)


def test_commands_may_be_objects_and_single_methods(tmp_path: Path) -> None:
    memory = LithosMemory(path=tmp_path)
    command = SimpleNamespace(command="create", path="/memories/a.md", file_text="a\n")
    assert memory.execute(command) == "File created successfully at: /memories/a.md"
    assert "\ta" in memory.view(SimpleNamespace(path="/memories/a.md", view_range=None))
    memory.str_replace(SimpleNamespace(path="/memories/a.md", old_str="a"))
    memory.insert(SimpleNamespace(path="/memories/a.md", insert_line=0, insert_text="b"))
    memory.rename(SimpleNamespace(old_path="/memories/a.md", new_path="/memories/b.md"))
    assert "\tb" in memory.view(SimpleNamespace(path="/memories/b.md"))
    memory.delete(SimpleNamespace(path="/memories/b.md"))
    memory.create(SimpleNamespace(path="/memories/c/d.md", file_text="c"))
    assert memory.clear_all_memory() == "All memory cleared"
    assert memory.call({"command": "view", "path": "/memories"}).endswith(":\n0B\t/memories")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Unknown command: 'None'"),
        ({"command": "clear"}, "Unknown command: 'clear'"),
        ({"command": "__init__"}, "Unknown command"),
        ({"command": "view"}, "A path must be a text"),
        ({"command": "view", "path": "/memories", "view_range": "1"}, "must be two line numbers"),
        ({"command": "view", "path": "/memories", "view_range": [1, None]}, "must be two line numbers"),
        ({"command": "create", "path": "/memories/a"}, "`file_text` must be a text"),
        ({"command": "create", "path": "/memories", "file_text": "a"}, "is not a file"),
        ({"command": "create", "path": "/memories/a/", "file_text": "a"}, "is not a file"),
        ({"command": "create", "path": "/memories/a", "file_text": "\ud800"}, "half a character"),
        ({"command": "insert", "path": "/memories/a", "insert_text": "a", "insert_line": "1"}, "line number"),
        (
            {"command": "insert", "path": "/memories/a", "insert_text": "a", "insert_line": True},
            "line number",
        ),
        ({"command": "str_replace", "path": "/memories/a", "old_str": None}, "`old_str` must be a text"),
        ({"command": "rename", "old_path": "/memories/a", "new_path": "/memories"}, "already exists"),
        ({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/a/b"}, "into itself"),
    ],
)
def test_wrong_arguments_get_a_clear_answer(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(MemoryToolError, match=message):
        LithosMemory(path=tmp_path).call(given)


async def test_asynchronous_tool_gives_the_same_answers(tmp_path: Path) -> None:
    memory = AsyncLithosMemory(path=tmp_path)
    assert await memory.call(USES[0]) == "File created successfully at: /memories/a.md"
    with pytest.raises(MemoryToolError, match=r"The path /memories/b\.md does not exist"):
        await memory.execute(SimpleNamespace(**USES[1]))
    assert await memory.view(SimpleNamespace(**USES[2])) == LithosMemory(path=tmp_path).call(USES[2])
    insert = SimpleNamespace(path="/memories/a.md", insert_line=1, insert_text="b")
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(memory.insert, insert)
    await memory.str_replace(SimpleNamespace(path="/memories/a.md", old_str="coffee", new_str="tea"))
    await memory.rename(SimpleNamespace(old_path="/memories/a.md", new_path="/memories/c.md"))
    assert (tmp_path / "c.md").read_text() == "I like tea.\n" + "b\n" * 5
    await memory.delete(SimpleNamespace(path="/memories/c.md"))
    await memory.create(SimpleNamespace(path="/memories/c.md", file_text=""))
    assert await memory.clear_all_memory() == "All memory cleared"


def test_lithos_does_not_depend_on_the_sdk() -> None:
    """behaviour 326"""
    folder = Path(lithos.memory_tool.__file__).parent
    nodes = [node for path in folder.glob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]
    assert [name for name in names if name.startswith("anthropic")] == []
    assert class_of_sdk("NoSuchClass", Exception) is Exception
    assert issubclass(MemoryToolError, class_of_sdk("ToolError", Exception))


def test_error_of_the_system_has_a_clear_text(tmp_path: Path) -> None:
    memory = LithosMemory(path=tmp_path / "memories")
    ask(memory, "create", "/memories/a.md", file_text="a")
    (tmp_path / "memories").rename(tmp_path / "gone")
    assert "The memory folder could not be used: No such file" in refused(memory, "view", "/memories/a.md")


class FakeApi:
    """Answers of the API: one tool use after the other, then a text."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: Any) -> Any:
        self.requests.append(json.loads(request.content))
        number = len(self.requests) - 1
        content: list[dict[str, Any]] = [{"type": "text", "text": "Done."}]
        if number < len(USES):
            content = [{"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": USES[number]}]
        body = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": content,
            "stop_reason": "tool_use" if number < len(USES) else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        return import_module("httpx2").Response(200, json=body)

    @property
    def results(self) -> list[tuple[bool, Any]]:
        """Return `is_error` and the content of each tool result, which the last turn of a request has."""
        found = [block for request in self.requests for block in request["messages"][-1]["content"]]
        return [
            (block.get("is_error", False), block["content"])
            for block in found
            if isinstance(block, dict) and block.get("type") == "tool_result"
        ]


GIVEN: dict[str, Any] = {
    "model": "claude",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Remember that I like coffee."}],
}
RESULTS = [
    (False, "File created successfully at: /memories/a.md"),
    (True, "The path /memories/b.md does not exist. Please provide a valid path."),
    (False, "Here's the content of /memories/a.md with line numbers:\n     1\tI like coffee."),
]


@with_sdk
def test_tool_runner_of_the_sdk_uses_the_memory(tmp_path: Path) -> None:
    sdk, http, api = import_module("anthropic"), import_module("httpx2"), FakeApi()
    memory = LithosMemory(path=tmp_path)
    assert isinstance(memory, import_module("anthropic.tools").BetaAbstractMemoryTool)
    with http.Client(transport=http.MockTransport(api)) as client:
        runner = sdk.Anthropic(api_key="k", http_client=client).beta.messages.tool_runner(
            tools=[memory], **GIVEN
        )
        assert runner.until_done().content[0].text == "Done."
    assert api.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert api.results == RESULTS


@with_sdk
async def test_asynchronous_tool_runner_of_the_sdk_uses_the_memory(tmp_path: Path) -> None:
    sdk, http, api = import_module("anthropic"), import_module("httpx2"), FakeApi()
    memory = AsyncLithosMemory(path=tmp_path)
    assert isinstance(memory, import_module("anthropic.tools").BetaAsyncAbstractMemoryTool)
    async with http.AsyncClient(transport=http.MockTransport(api)) as client:
        anthropic = sdk.AsyncAnthropic(api_key="k", http_client=client)
        runner = anthropic.beta.messages.tool_runner(tools=[memory], **GIVEN)
        assert (await runner.until_done()).content[0].text == "Done."
    assert api.results == RESULTS
