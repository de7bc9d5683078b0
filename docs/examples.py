"""Example call and answer of each tool for `docs/reference/tools.md`, made with a small server.

Ids and times are replaced by fixed names, and numbers are shown with two digits. The page is therefore the
same on every machine.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio
from attrs import define

from lithos.app.server import Server, running_server
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.search.settings import SearchConfig
from lithos.server.settings import ServerConfig

_NOW: Final = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
_UUID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_RECEIPT: Final = re.compile(r"\brcpt_[0-9a-f]{16}\b")
_EDGE: Final = re.compile(r"\bedge_[0-9a-f]+\b")
_TIME: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\+00:00")
#: Fences depend on the start time of the server.
_FENCE: Final = re.compile(r'(?<="fence": )\d+')
#: Journal positions depend on the start time of the server.
_CURSOR: Final = re.compile(r'(?<="cursor": ")\d+')
_HASH: Final = re.compile(r"\b[0-9a-f]{32,64}\b")
#: Maximum number of characters in a code line on the page.
_WIDTH: Final = 118


@define
class Example:
    """Tool call with its answer."""

    arguments: Mapping[str, Any]
    answer: Any


@define
class _Script:
    """Sequence of calls to one server. The page shows the last call of each tool."""

    server: Server
    examples: dict[str, Example]

    async def call(self, name: str, /, **arguments: Any) -> Any:
        tool = f"lithos_{name}"
        answer = await self.server.tools.call(tool, arguments)
        self.examples[tool] = Example(arguments, answer)
        return answer

    async def run(self) -> None:
        await self._notes()
        await self._tasks()
        await self._tidy_up()

    async def _notes(self) -> None:
        call = self.call
        paper = await call(
            "write", title="Raft paper", content="Ongaro and Ousterhout, 2014.", agent="ann", path="sources"
        )
        note = await call(
            "write",
            title="Leader election",
            content="A follower that hears nothing for a while becomes a candidate and asks all servers for "
            "their votes. With a majority it is the leader.\n\nSee [[Raft paper]].",
            agent="ann",
            tags=["raft"],
            path="notes",
            derived_from_ids=[paper["id"]],
        )
        other = await call(
            "write", title="Fixed leader", content="One server leads for ever.", agent="bob", path="notes"
        )
        await self.server.searchable()
        await call("read", path="notes/leader-election", max_length=60, agent="ann")
        await call("search", query="who becomes leader", limit=1)
        await call("retrieve", query="who becomes leader", limit=1, agent="ann")
        await call("context", query="who becomes leader", budget=300, agent="ann")
        await call("cache_lookup", query="how does a follower become the leader?")
        await call("list", path_prefix="sources/")
        await call("related", id=note["id"], include=["links", "provenance"])
        await call("tags", prefix="r")
        edge = await call(
            "edge_upsert",
            from_id=other["id"],
            to_id=note["id"],
            type="contradicts",
            weight=0.8,
            namespace="notes",
            agent="ann",
        )
        await call("edge_list", from_id=other["id"])
        await call(
            "conflict_resolve",
            edge_id=edge["edge_id"],
            resolution="superseded",
            winner_id=note["id"],
            agent="ann",
        )
        await call("note_update", id=note["id"], agent="ann", tags=["raft", "votes"])
        await call("history", id=note["id"], limit=1)
        await call("restore", id=note["id"], version=1, agent="bob")
        await call(
            "note_edit",
            id=note["id"],
            agent="bob",
            op="append",
            text="## Ties\n\nWith as many votes each, both wait for a random time.",
        )
        await call(
            "note_edit", id=note["id"], agent="ann", op="append", section="Ties", text="Then they retry."
        )
        await call("node_stats", node_id=paper["id"])
        await call("links", id=note["id"])
        await call("semantic", query="votes of a majority", limit=1)
        await call("provenance", id=note["id"])
        await call("delete", id=other["id"], agent="ann")

    async def _tasks(self) -> None:
        call = self.call
        await call("agent_register", id="ann", type="claude-code")
        await call("agent_info", id="ann")
        await call("agent_list", type="claude-code")
        first = (await call("task_create", title="Read the paper", agent="ann"))["task_id"]
        second = (
            await call("task_create", title="Explain Raft", agent="ann", tags=["raft"], depends_on=[first])
        )["task_id"]
        await call("task_update", task_id=second, agent="ann", description="For people who are new.")
        await call("task_claim", task_id=first, aspect="reading", agent="bob", ttl_minutes=30)
        await call("task_renew", task_id=first, aspect="reading", agent="bob", ttl_minutes=60)
        await call("task_status", task_id=first)
        await call("task_list", tags=["raft"])
        await call("task_get", task_id=second)
        await call("task_ready")
        await call("task_blocked")
        await call("task_spawn", source_task_id=second, title="Draw the states", agent="bob")
        await call("task_edge_list", task_id=second, direction="incoming")
        await call("finding_post", task_id=first, agent="bob", summary="Section 5 has all of it.")
        await call("finding_list", task_id=first)

    async def _tidy_up(self) -> None:
        call = self.call
        (first,) = (await self.server.tools.call("lithos_task_ready", {"limit": 1}) or {})["tasks"][-1:]
        (held,) = (await self.server.tools.call("lithos_task_blocked", {}) or {})["tasks"]
        before = held["blockers"][0]["task_id"]
        await call("task_release", task_id=before, aspect="reading", agent="bob")
        await call("task_complete", task_id=before, agent="bob", outcome="Read.")
        await call("task_reopen", task_id=before, agent="ann")
        parent = (await call("task_create", title="Raft", agent="ann", task_type="epic"))["task_id"]
        await call(
            "task_edge_upsert", from_task_id=parent, to_task_id=held["id"], type="parent_child", agent="ann"
        )
        await call("task_children", task_id=parent)
        await call("task_cancel", task_id=first["id"], agent="ann", reason="Not needed.")
        await call("task_next", agent="bob", aspect="reading", ttl_minutes=30)
        await call("stats")
        (paper,) = (await self.server.tools.call("lithos_list", {"title_contains": "paper"}) or {})["items"]
        await call(
            "impact",
            id=paper["id"],
            action="quarantine",
            agent="ann",
            reason="A corrected edition is out.",
            open_tasks=True,
        )


def make_examples() -> Mapping[str, Example]:
    """Return an example for each tool, by tool name."""

    async def run(folder: Path) -> Mapping[str, Example]:
        config = Config(
            storage=StorageConfig(data_dir=folder),
            server=ServerConfig(watch_files=False, tools="full", legacy_tools=True),
            search=SearchConfig(tier="static"),
        )
        examples: dict[str, Example] = {}

        def clock() -> datetime:
            return _NOW + timedelta(seconds=len(examples))

        async with running_server(config, clock=clock) as server:
            await server.searchable()
            script = _Script(server, examples)
            await script.run()
            return examples

    with tempfile.TemporaryDirectory() as folder:
        return trio.run(run, Path(folder))


def render_example(tool: str, example: Example) -> str:
    """Return a call and its answer as a Markdown code block."""
    masks = _Masks()
    call = masks.apply(json.dumps(example.arguments, ensure_ascii=False))
    answer = masks.apply(json.dumps(_rounded(example.answer), ensure_ascii=False))
    lines = [*_broken(f"{tool} {call}"), *_broken(f"-> {answer}")]
    return "\n".join(["```text", *lines, "```"])


class _Masks:
    """Replacements for values that are different in each run. Each value gets a fixed name."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def apply(self, text: str) -> str:
        for pattern, name in ((_UUID, "id"), (_RECEIPT, "rcpt"), (_EDGE, "edge"), (_HASH, "hash")):
            text = pattern.sub(partial(self._rename, name), text)
        text = _CURSOR.sub("1741064767000", _FENCE.sub("1741064767000", text))
        return _TIME.sub(lambda match: match[0] if match[0].startswith("2026-03-04") else "<time>", text)

    def _rename(self, kind: str, match: re.Match[str]) -> str:
        number = sum(each.startswith(f"<{kind} ") for each in self._names.values()) + 1
        return self._names.setdefault(match[0], f"<{kind} {number}>")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 2)
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value


def _broken(text: str) -> list[str]:
    """Return a line as several lines of limited length. It is broken at spaces."""
    lines: list[str] = []
    while len(text) > _WIDTH:
        cut = text.rfind(" ", 0, _WIDTH)
        cut = cut if cut > 4 else _WIDTH
        lines.append(text[:cut])
        text = "   " + text[cut:].lstrip()
    return [*lines, text]
