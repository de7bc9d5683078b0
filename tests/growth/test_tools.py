"""Single calls and files, which must not block other requests of the server (issue 11, growth)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from tests.e2e.clients import WireClient
from tests.e2e.process import Lithos, running_lithos
from tests.growth.patterns import Pattern, single_patterns
from tests.growth.polling import PATIENCE, HealthPoll

pytestmark = [pytest.mark.slow, pytest.mark.takes(25)]

#: Number of characters in an argument: the size of a whole note if the argument allows it. Other arguments
#: accept far less, so a quarter of this size is enough to test their refusal.
NOTE: Final = 1_000_000
ARGUMENT: Final = 120_000
#: Patterns that may slow down parsers of arguments. `test_parsers` tries all patterns directly on the
#: parsers.
PATTERNS: Final = ("blank", "marks of two classes", "CJK", "different links", "query pairs")
#: Patterns that may be slow in whole notes.
NOTE_PATTERNS: Final = (
    "marks of two classes", "link of marks", "CJK", "different links", "links of one stem", "growing fences",
)  # fmt: skip


def values_of(kind: str, text: str) -> Iterator[Any]:
    """Yield the values of this parameter type that contain the text."""
    if kind == "string":
        yield text
    elif kind == "array":
        yield [text]
        yield [text[begin : begin + 50] for begin in range(0, len(text), 50)]
    elif kind == "object":
        yield {"key": text}
        yield {text: "value"}
        yield {f"key{begin}": text[begin : begin + 50] for begin in range(0, len(text), 50)}


def text_arguments(tools: list[Mapping[str, Any]]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield (tool, argument, type, schema) for every argument that accepts text."""
    for tool in tools:
        for name, schema in tool["inputSchema"]["properties"].items():
            kind = schema.get("type", "object")
            if kind in ("string", "array", "object"):
                yield tool["name"], name, kind, tool["inputSchema"]


def required_of(schema: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the required arguments. They are chosen so that the call gets as far as possible."""
    plain = {"string": "x", "number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}
    return {
        name: known.get(name, plain[schema["properties"][name].get("type", "object")])
        for name in schema.get("required", ())
    }


async def send(client: WireClient, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    status, body = await client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    assert status in (200, 413), (status, body[:300])
    return dict(json.loads(body).get("result", {})) if status == 200 else {}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lithos]:
    data = tmp_path_factory.mktemp("growth") / "data"
    with running_lithos(data, env={"LITHOS_SERVER__TOOLS": "full"}) as running:
        yield running
        assert running.stop() == 0
        assert "Traceback" not in running.log()


async def ids_of(client: WireClient) -> dict[str, Any]:
    """Return values for required arguments. With these values, calls do their work before any refusal."""
    note = await client.call("lithos_write", title="A note", content="text [[other]]", agent="ann")
    task = await client.call("lithos_task_create", title="A task", agent="ann")
    other = await client.call("lithos_task_create", title="Another task", agent="ann")
    return {
        "id": note["id"], "node_id": note["id"], "from_id": note["id"], "task_id": task["task_id"],
        "source_task_id": task["task_id"], "from_task_id": task["task_id"], "to_task_id": other["task_id"],
        "agent": "ann", "title": "A title", "aspect": "work", "type": "blocks",
    }  # fmt: skip


@pytest.mark.deadline(600)
async def test_health_answers_in_time_during_any_call_with_text(server: Lithos) -> None:
    """tools §1.2, lifecycle §3: /health answers within one second during any single call."""
    patterns = single_patterns()
    late: dict[tuple[str, str, str], float] = {}
    pairs = 0
    async with WireClient.open(server.address) as client:
        known = await ids_of(client)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        tools = json.loads((await client.post(message))[1])["result"]["tools"]
        arguments = list(text_arguments(tools))
        assert len(tools) >= 37
        assert len(arguments) > 90
        with HealthPoll(server) as poll:
            for pattern in PATTERNS:
                text = patterns[pattern](ARGUMENT)
                for tool, name, kind, schema in arguments:
                    pairs += 1
                    calls = [required_of(schema, known) | {name: value} for value in values_of(kind, text)]
                    for call in calls:
                        await send(client, tool, call)
                    if (waited := poll.slowest()) > PATIENCE:
                        late[tool, name, pattern] = waited
            assert poll.answers > 50
    assert pairs > 90 * len(PATTERNS)
    assert not late, late


@pytest.mark.deadline(600)
@pytest.mark.nightly
async def test_health_answers_in_time_while_megabyte_notes_are_processed(server: Lithos) -> None:
    """tools §1.2, lifecycle §3: notes are written, updated, searched, related and read."""
    late: dict[str, dict[str, float]] = {}
    async with WireClient.open(server.address) as client:
        with HealthPoll(server) as poll:
            for pattern in NOTE_PATTERNS:
                steps = _live(client, poll, pattern, single_patterns()[pattern])
                waited = {step: seconds async for step, seconds in steps if seconds > PATIENCE}
                if waited:
                    late[pattern] = waited
    assert not late, late


async def _live(
    client: WireClient, poll: HealthPoll, name: str, pattern: Pattern
) -> AsyncIterator[tuple[str, float]]:
    """Create, use and delete a note. Yield the longest `/health` response time of each step, in seconds."""
    text = f"start {pattern(NOTE)}"
    content = text.encode()[:NOTE].decode(errors="ignore")
    written = await send(
        client, "lithos_write", {"title": f"Note of {name}", "content": content, "agent": "ann"}
    )
    note = written["structuredContent"]
    yield "write", poll.slowest()
    assert note["status"] == "created", note
    for tool, arguments in (
        ("lithos_search", {"query": "start", "mode": "hybrid"}),
        ("lithos_search", {"query": content[:3_000], "mode": "fulltext"}),
        ("lithos_retrieve", {"query": f"note of {name}", "agent_id": "ann"}),
        ("lithos_related", {"id": note["id"], "depth": 3}),
        ("lithos_read", {"id": note["id"], "max_length": NOTE // 2}),
        ("lithos_note_update", {"id": note["id"], "agent": "ann", "tags": ["new"]}),
        ("lithos_write", {"id": note["id"], "title": "Other", "content": content[::-1], "agent": "ann"}),
        ("lithos_delete", {"id": note["id"], "agent": "ann"}),
    ):
        await send(client, tool, arguments)
        yield tool, poll.slowest()


def large_files() -> dict[str, bytes]:
    """Return files that people or programs may create. The keys are names, the values are bytes."""
    patterns = single_patterns()
    megabytes = 10_000_000
    return {
        "links.md": " ".join(f"[[target {n}]]" for n in range(90_000)).encode(),
        "one-stem.md": " ".join(f"[[folder{n}/links]]" for n in range(90_000)).encode(),
        "marks.md": ("a" + "\u0301\u0323" * 250_000).encode(),
        "many-links.md": patterns["different links"](megabytes // 10).encode(),
        "line.md": b"a" * megabytes,
        "long-title.md": b"# " + b"long title " * 100_000 + b"\n\ntext\n",
        "title-key.md": b"---\ntitle: " + b" a" * 50_000 + b"\n---\ntext\n",
        "blank-title.md": b"# a" + b" " * 100_000 + b"b\n\ntext\n",
        "frontmatter.md": b"---\n" + patterns["different keys"](2_000_000).encode() + b"---\ntext\n",
        "scalar.md": b'---\nkey: "' + b"a " * 2_000_000 + b'"\n---\ntext\n',
        "broken.md": b"---\n" + b"[" * megabytes + b"\n---\n",
        "words.md": patterns["sentences"](megabytes // 10).encode(),
    }


async def _start_anew(data: Path) -> float:
    """Return the longest `/health` response time (seconds) during a first scan, from the first answer on."""
    for name in ("manifest.db", "manifest.db-wal", "manifest.db-shm"):
        with suppress(FileNotFoundError):
            (data / ".lithos" / name).unlink()
    with running_lithos(data) as lithos:
        with HealthPoll(lithos) as poll, trio.fail_after(200):
            while lithos.log().count("semantic search ready") < 2:  # the earlier server wrote to the same log
                await trio.sleep(0.05)
            slowest = poll.slowest()
        assert lithos.stop(within=90.0) == 0
    return slowest


@pytest.mark.deadline(600)
@pytest.mark.nightly
async def test_health_answers_in_time_while_external_files_are_read(tmp_path: Path) -> None:
    """notes §4, lifecycle §5: the watcher and the startup scan process files during other work."""
    files = large_files()
    data = tmp_path / "data"
    with running_lithos(data) as lithos:
        late = await _leave_files(lithos, data / "knowledge", files)
        assert lithos.stop(within=90.0) == 0
    late["start"] = await _start_anew(data)
    assert {name: (data / "knowledge" / name).read_bytes() == text for name, text in files.items()} == (
        dict.fromkeys(files, True)
    )
    assert {name: waited for name, waited in late.items() if waited > PATIENCE} == {}


async def _leave_files(lithos: Lithos, folder: Path, files: Mapping[str, bytes]) -> dict[str, float]:
    """Write each file. Wait until it is indexed, or reported as unreadable."""
    late: dict[str, float] = {}
    async with WireClient.open(lithos.address) as client:
        with HealthPoll(lithos) as poll:
            for name, content in files.items():
                late[name] = await _leave(client, lithos, poll, folder / name, content)
    return late


async def _leave(client: WireClient, lithos: Lithos, poll: HealthPoll, file: Path, content: bytes) -> float:
    """Return the longest `/health` response time (seconds) while a file is processed."""
    poll.slowest()
    file.write_bytes(content)
    with trio.fail_after(120):
        while not await _is_taken(client, lithos, file.name):
            await trio.sleep(0.05)
    await send(client, "lithos_search", {"query": "text", "mode": "fulltext"})
    await send(client, "lithos_list", {"limit": 100})
    return poll.slowest()


async def _is_taken(client: WireClient, lithos: Lithos, name: str) -> bool:
    answer = await client.call("lithos_list", path_prefix=name)
    return bool(answer["items"]) or f'"path":"{name}"' in lithos.log()
