"""`lithos demo`: two agents work in a temporary data directory, and the output shows every MCP call.

With `--stay`, the demo plays a scripted day (`day`) instead, and serves it with its console until the user
stops it.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio
from attrs import define

from lithos.app.demo.day import SCOPES, Day, DayClock
from lithos.app.front import serve_front
from lithos.app.server import Server, running_server
from lithos.app.serving.hosting import front_settings, url_of
from lithos.events.commands_events import Feed, Record
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.notes.settings import AgentsConfig
from lithos.server.command.output import print_json, print_line
from lithos.server.command.serve_ports import publish_address
from lithos.server.command.session import CommandSession
from lithos.server.mcp.client import OwnerClient

#: Files that a vault copy leaves out: version control, and private files of programs.
_HIDDEN = shutil.ignore_patterns(".*")
SCOUT, WRITER = "scout", "writer"
#: Maximum seconds to wait for one operation of the demo.
PATIENCE = 30.0
_NOTES = (
    {
        "title": "Log replication",
        "content": "The leader appends commands to its log and sends them to all followers. An entry is "
        "committed when a majority has stored it.",
        "tags": ["raft"],
    },
    {
        "title": "Sourdough",
        "content": "Feed the starter with flour and water, and bake when it has doubled.",
        "tags": ["kitchen"],
    },
)
_ELECTION = {
    "title": "Raft leader election",
    "content": "A follower that hears nothing until its timeout ends becomes a candidate and asks for votes. "
    "The candidate with a majority leads the term, and starts [[Log replication]].",
    "tags": ["raft", "consensus"],
    "source_url": "https://raft.github.io",
    "ttl_hours": 720,
}
_ID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_QUESTION = "which candidate wins the ballot?"
_SEARCHES = (
    ("fulltext", '"leader election" OR votes'),
    ("semantic", _QUESTION),
    ("hybrid", "majority of votes"),
)
_NEXT = (
    ("lithos serve --transport http", "serve ./data, where your notes will be"),
    ("lithos connect claude-code", "how your agent reaches it (also openclaw, agent-zero, cursor, …)"),
    ('lithos search "your question" --hybrid', "ask it yourself"),
)


def run_demo(session: CommandSession) -> int:
    """Play the demo, or serve the scripted day. Afterwards the temporary folder is deleted."""
    data = Path(tempfile.mkdtemp(prefix="lithos-demo-"))
    config = session.config.replace(attrs.evolve(session.config.of(StorageConfig), data_dir=data))
    stays = session.typed.get("stay", False)
    try:
        trio.run(_stay if stays else _play, attrs.evolve(session, config=config))
    finally:
        shutil.rmtree(data, ignore_errors=True)
    return 0


async def _play(session: CommandSession) -> None:
    async with _serving(session.config) as (server, url):
        publish_address(server, url)
        stage = Stage(session, OwnerClient(url, None))
        stage.say(f"A server without notes listens on {url}; two agents connect to {url}/mcp.")
        await _share_a_note(stage)
        await _divide_work(stage)
        await _search(stage)
    stage.close()


async def _stay(session: CommandSession) -> None:
    """Play the scripted day, then serve it until the process is interrupted or terminated."""
    # The demo uses a vault only if the user named it, not because it is configured.
    is_asked_for = bool(session.named.chosen) or not session.vaults
    vault = session.config.of(StorageConfig).vault if is_asked_for else None
    folder = session.config.of(StorageConfig).data_dir / "knowledge"
    if vault is not None:
        await trio.to_thread.run_sync(partial(shutil.copytree, vault, folder, ignore=_HIDDEN))
    storage = attrs.evolve(session.config.of(StorageConfig), vault=None)
    config, clock = session.config.replace(storage, AgentsConfig(agents=SCOPES)), DayClock()
    _tell(session, "Playing a day of eight agents ...")
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with _serving(config, session.typed.get("port", 0), clock=clock) as (server, url):
            await Day(server, clock, folder).play()
            publish_address(server, url)
            console = f"{url}/console/"
            _tell(
                session,
                f"The console: {console} (press Ctrl+C to stop; this also deletes the folder)",
                url=console,
            )
            async for _ in signals:
                break


def _tell(session: CommandSession, text: str, **fields: str) -> None:
    if not session.as_json:
        print_line(text)
    elif fields:
        print_json(fields)


async def _share_a_note(stage: Stage) -> None:
    stage.say("1. An agent searches before it researches, and writes down what it learned.")
    await stage.call(SCOUT, "lithos_cache_lookup", query="how does raft elect a leader?")
    for note in _NOTES:
        await stage.call(SCOUT, "lithos_write", **note, agent=SCOUT)
    await stage.call(SCOUT, "lithos_write", **_ELECTION, agent=SCOUT)
    stage.say("   Another agent has the same question, and finds the answer in the notes.")
    answer = await stage.call(WRITER, "lithos_cache_lookup", query="how does raft elect a leader?")
    await stage.call(WRITER, "lithos_related", id=answer["document"]["id"], include=["links"])


async def _divide_work(stage: Stage) -> None:
    stage.say(
        "2. Two agents want the same work. One gets the claim; the other learns who holds it and until when."
    )
    created = await stage.call(SCOUT, "lithos_task_create", title="Explain Raft to new people", agent=SCOUT)
    task = created["task_id"]
    winners: list[str] = []
    async with trio.open_nursery() as nursery:
        for agent in (SCOUT, WRITER):
            nursery.start_soon(stage.claim, agent, task, winners)
    (winner,) = winners
    stage.say("3. Subscribers get every event, here over a WebSocket as in `lithos wait`.")
    async with trio.open_nursery() as nursery:
        await nursery.start(stage.listen, "finding.posted")
        await stage.call(
            winner, "lithos_finding_post", task_id=task, agent=winner, summary="One page is enough."
        )
    await stage.call(
        winner, "lithos_task_complete", task_id=task, agent=winner, outcome="A page was written."
    )


async def _search(stage: Stage) -> None:
    stage.say("4. Full-text, semantic and hybrid search.")
    for mode, query in _SEARCHES:
        await stage.call(WRITER, "lithos_search", query=query, mode=mode, limit=2)


@asynccontextmanager
async def _serving(config: Config, port: int = 0, **more: Any) -> AsyncIterator[tuple[Server, str]]:
    """Run a server on its own port inside the block, and yield the server with its address.

    `more` is passed to `running_server`.
    """
    shutdown = trio.Event()
    async with running_server(config, **more) as server, trio.open_nursery() as nursery:
        settings = front_settings(config, "127.0.0.1", port, None)
        yield server, url_of(*await nursery.start(serve_front, settings, server, shutdown))
        shutdown.set()


@define
class Stage:
    """Output of the demo.

    The stage makes calls and shows them as lines for a person, or as JSON objects with `--json`.
    """

    session: CommandSession
    client: OwnerClient

    def say(self, text: str) -> None:
        """Print a line between calls."""
        if not self.session.as_json:
            if text[0].isdigit():
                print_line("")
            print_line(text)

    async def call(self, caller: str, tool: str, /, **arguments: Any) -> Mapping[str, Any]:
        """Make an MCP call as an agent. Show the call and its answer."""
        as_json = self.session.as_json
        if not as_json:
            print_line(f"   {caller:>6} -> {tool} {_shorten(arguments)}")
        with trio.fail_after(PATIENCE):
            answer = await self.client.call(tool, arguments) or {}
        if as_json:
            print_json({"agent": caller, "tool": tool, "arguments": arguments, "answer": answer})
        else:
            for line in _describe(answer):
                print_line(f"   {caller:>6} <- {line}")
        return answer

    async def claim(self, agent: str, task: str, winners: list[str]) -> None:
        """Claim the aspect that several agents want.

        If the claim succeeds, the agent is added to `winners`.
        """
        answer = await self.call(agent, "lithos_task_claim", task_id=task, aspect="draft", agent=agent)
        if answer.get("success"):
            winners.append(agent)

    async def listen(
        self, kind: str, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Show the next event of a kind.

        `started` is called as soon as that event can no longer be missed.
        """
        head = (await self.client.health())["components"]["events"]["head"]
        task_status.started()
        with trio.fail_after(PATIENCE):
            await Feed(self.session, types=kind, since=str(head)).follow(self._show_event)

    def _show_event(self, event: Record) -> bool:
        if self.session.as_json:
            print_json({"event": dict(event)})
        else:
            print_line(f"          ** {event['type']} {_shorten(event['payload'])}")
        return True

    def close(self) -> None:
        """Print suggested next steps."""
        if self.session.as_json:
            return
        print_line("")
        print_line(
            "This was the whole demo: it used no cloud and no other service, and its folder is deleted. Next:"
        )
        width = max(len(command) for command, _ in _NEXT)
        for command, meaning in _NEXT:
            print_line(f"   {command:<{width}}   {meaning}")


def _describe(answer: Mapping[str, Any]) -> list[str]:
    """Return an answer as one line. Search results are one line each."""
    results = answer.get("results")
    if isinstance(results, list):
        return [f"{_sureness(row)}  {row['title']}" for row in results] or ["nothing"]
    document = answer.get("document")
    if isinstance(document, dict):
        return [
            _shorten({**answer, "document": {"title": document["title"], "content": document["content"]}})
        ]
    return [_shorten(answer)]


def _sureness(row: Mapping[str, Any]) -> str:
    """Return the score of a row.

    Compact answers have no scores, so return the confidence of the search instead.
    """
    return f"{row['score']:.2f}" if "score" in row else str(row.get("match", ""))


def _shorten(value: Mapping[str, Any], width: int = 96) -> str:
    """Return a value as compact JSON. Uninformative parts are left out, and ids are cut."""
    told = {key: inner for key, inner in value.items() if inner not in (None, [], {})}
    text = _ID.sub(r"\1…", json.dumps(told, ensure_ascii=False))
    return text if len(text) <= width else f"{text[: width - 1]}…"
