"""The actions of a `bench.golden` recording: servers, commands, edits by a person, and the final files."""

from __future__ import annotations

import json
import os
import re
import threading
from functools import partial
from typing import Any, Final

import trio

from bench.golden_calls import Script
from bench.golden_recording import Client, Recording

RIGHTS: Final = ("read", "write", "admin")
#: Commands that query a running server.
_BESIDE: Final = """\
stats; --json stats; search staking; --json search staking -n 2; brief staking --agent ann;
--json brief staking; inspect health; inspect tasks --all; inspect agents; audit -n 3;
history what/staking.md; events --no-follow --since 0 --limit 5;
wait --since 0 --types note.created --timeout 1; checkpoint --text Learned --agent ann;
undo --agent bob --since 2026-03-02T00:00:00Z --dry-run; reconcile --dry-run; doctor; --json validate
"""
#: Commands that need no server. Commands that only read also run with `--json`.
_ALONE: Final = """\
stats; search staking; search staking --fulltext -n 2; search staking --semantic; search zzzz;
inspect health; inspect agents; inspect tasks; inspect tasks --all; inspect doc what/staking.md;
inspect doc what/staking.md --content; inspect doc nowhere; audit; audit -a ann -n 3;
history what/staking.md; history what/staking.md --diff 1; history --deleted; history nowhere;
undo --agent bob --since 2026-03-02T00:00:00Z --dry-run; validate; validate --all; validate --strict;
doctor; export; evaluate questions.yaml; evaluate questions.yaml --mode fulltext; reconcile --dry-run;
reconcile --scope graph --dry-run; extract-entities --dry-run;
restore-note what/staking.md --version 1; undo --agent bob --since 2026-03-02T00:00:00Z; token list;
token create ann --agent ann --rights write; token list; token revoke ann; brief staking;
events --no-follow; connect; connect --list; reindex; reconcile; backup backup; restore backup
"""
_CLIENTS: Final = (
    "claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini-cli", "zed", "opencode",
)  # fmt: skip
_CLIENT: Final = {"name": "golden", "version": "1"}
_HELLO: Final = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _CLIENT}
_EDIT: Final = {"path": "what/coda.md", "agent": "ann", "tags": ["t"]}
#: Requests over stdio: method and parameters.
_STDIO: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("initialize", _HELLO),
    ("notifications/initialized", {}),
    ("tools/list", {}),
    ("prompts/list", {}),
    ("resources/templates/list", {}),
    ("resources/subscribe", {"uri": "lithos://tags"}),
    ("nothing", {}),
    ("tools/call", {"name": "lithos_tags", "arguments": {}}),
    ("tools/call", {"name": "lithos_read", "arguments": {}}),
    ("tools/call", {"name": "lithos_note_update", "arguments": _EDIT}),
)
#: Texts that a person appends to files while no server runs.
_EDITS: Final = (
    ("what/staking.md", "\nEdited by hand.\n"),
    ("what/new.md", "---\ntags: [a, b]\n---\n# New\n\n[[Blockchain]]\n"),
    ("what/broken.md", "---\ntags: [a\n---\n# Broken\n"),
)
#: Calls that are made after the edits of the notes.
_SECOND: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("stats", {}), ("list", {"limit": 200}), ("history", {"deleted": True}),
    ("search", {"query": "edited by hand"}), ("read", {"path": "what/new.md"}),
)  # fmt: skip
#: Questions for `lithos evaluate`.
_QUESTIONS: Final = """\
- question: proof of stake
  expect: [what/proof-of-stake.md]
- question: andy
  expect: [who/andy.md]
"""


def play(recording: Recording) -> None:
    """Perform all actions in their order."""
    vault = ("-d", str(recording.root / "data"), "--vault", str(recording.root / "vault"))
    own = ("-d", str(recording.root / "own"))
    _play_vault(recording, vault)
    _play_own(recording, own)
    for profile in ("core", "standard", "full"):
        _play_profile(recording, own, profile)
    _play_stdio(recording, own)
    _keep_files(recording)
    _keep_helps(recording)


def _play_vault(recording: Recording, where: tuple[str, ...]) -> None:
    async def first(client: Client) -> None:
        tools = (await client.rpc("tools", "tools/list", {}, "vault "))["tools"]
        script = Script(partial(client.tool, "calls-vault"))
        await script.run()
        left_out = {tool["name"] for tool in tools} ^ script.accepted.keys()
        assert not left_out, left_out
        await _look_around(client)
        await script.run_odd(tools)
        await client.get("endpoints", "/metrics")
        await client.stream("events", "/events?since=0", "no such text")

    async def second(client: Client) -> None:
        for tool, arguments in _SECOND:
            await client.tool("calls-second", f"lithos_{tool}", arguments)
        await client.stream("events", "/events?since=0", "no such text")
        for line in _lines(_BESIDE):
            await client.beside(*line.split(" "))

    recording.serve(where, first, "--tools", "full")
    vault = recording.root / "vault"
    for path, text in _EDITS:
        with (vault / path).open("a") as file:
            file.write(text)
        os.utime(vault / path, (1_770_000_000, 1_770_000_000))
    (vault / "what/gpl.md").unlink()
    (vault / "what/lgpl.md").rename(vault / "what/lesser.md")
    recording.serve(where, second)
    _commands(recording, where)


async def _look_around(client: Client) -> None:
    """Fetch pages, other endpoints, prompts and resources before any tool has changed the notes."""
    for method in ("prompts/list", "resources/list", "resources/templates/list", "ping", "no/such"):
        result = await client.rpc("mcp", method, {})
        for each in [*result.get("resources", [])[:12]]:
            await client.rpc("mcp", "resources/read", {"uri": each["uri"]})
        for prompt in result.get("prompts", []):
            given = {argument["name"]: "blockchain" for argument in prompt.get("arguments", [])}
            await client.rpc("mcp", "prompts/get", {"name": prompt["name"], "arguments": given})
            await client.rpc("mcp", "prompts/get", {"name": prompt["name"]})
    for address in ("/health", "/audit", "/audit?titles=true&limit=3", "/audit?agent_id=ann", "/reconcile",
                    "/reconcile?scope=graph", "/nothing", "/metrics", "/mcp", "/health/"):  # fmt: skip
        await client.get("endpoints", address)
    await client.get("endpoints", "/health", "POST")
    await client.stream("events", "/events?since=0", "no such text")
    await client.stream("events", "/events?since=0&types=task.created,note.deleted", "no such text")
    await client.crawl()


def _lines(text: str) -> list[str]:
    return re.split(r"; |;?\n", text.strip())


def _commands(recording: Recording, where: tuple[str, ...]) -> None:
    """Run every command that needs no server."""
    (recording.root / "work/questions.yaml").write_text(_QUESTIONS)
    for line in _lines(_ALONE):
        words = line.split(" ")
        recording.command(*where, *words)
        if words[0] not in ("restore-note", "undo", "backup", "restore", "token"):
            recording.command(*where, "--json", *words)
    for client in [
        "claude-code",
        "claude-desktop",
        "cursor",
        "vscode",
        "codex",
        "gemini-cli",
        "zed",
        "opencode",
    ]:
        recording.command(*where, "connect", client)
    for line in ("skill", "completion bash", "completion zsh", "nonsense", "search"):
        recording.command(*line.split(" "))


def _play_own(recording: Recording, where: tuple[str, ...]) -> None:
    recording.command(*where, "import", str(recording.root / "vault"), "--dry-run")
    recording.command(*where, "import", str(recording.root / "vault"))

    async def play(client: Client) -> None:
        await Script(partial(client.tool, "calls-own")).run()
        await client.stream("events", "/events?since=0", "no such text")
        await client.get("endpoints", "/metrics")

    recording.serve(where, play, "--tools", "full")


def _play_profile(recording: Recording, where: tuple[str, ...], profile: str) -> None:
    """Record the tools that each right lists, may use, and may not use, with one profile."""
    tokens: dict[str, str] = {}
    for right in RIGHTS:
        create = (*where, "--json", "token", "create", f"{profile}-{right}", "--rights", right)
        tokens[right] = json.loads(recording.command(*create).out)["token"]

    async def play(client: Client) -> None:
        await client.rpc("tools", "tools/list", {}, f"{profile} nobody ")
        await client.get("endpoints", "/console/")
        for right, token in tokens.items():
            named = Client(client.recording, client.http, where, {"Authorization": f"Bearer {token}"})
            tools = (await named.rpc("tools", "tools/list", {}, f"{profile} {right} "))["tools"]
            known = ["lithos_stats", "lithos_agent_register", "lithos_delete", "lithos_no_such"]
            for tool in (*known, tools[0]["name"]):
                given = {"id": "x"} if "agent" in tool else {}
                await named.tool("rights", tool, given, f"{profile} {right} ")
            for address in ("/health", "/metrics", "/audit"):
                await named.get("rights", address)

    recording.serve(where, play, "--tools", profile)
    for right in RIGHTS:
        recording.command(*where, "token", "revoke", f"{profile}-{right}")


def _play_stdio(recording: Recording, where: tuple[str, ...]) -> None:
    """Record the answers to one client over stdio."""
    held, (stdin, feed), (drain, stdout) = (os.dup(0), os.dup(1)), os.pipe(), os.pipe()
    received = bytearray()

    def read() -> None:
        while part := os.read(drain, 65_536):
            received.extend(part)

    async def drive() -> None:
        await trio.sleep(20)
        for number, (method, params) in enumerate(_STDIO):
            message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
            if not method.startswith("notifications/"):
                message["id"] = number
            os.write(feed, json.dumps(message).encode() + b"\n")
            await trio.sleep(3)
        os.close(feed)

    reader = threading.Thread(target=read)
    reader.start()
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    try:
        done = recording.world.run(*where, "serve", "-t", "stdio", "--no-watch", driver=drive)
    finally:
        for number, descriptor in enumerate(held):
            os.dup2(descriptor, number)
        os.close(stdout)
        reader.join()
    recording.keep("stdio", "messages", received.decode())
    recording.keep("servers", "stdio", done.text)


def _keep_files(recording: Recording) -> None:
    root = recording.root
    for folder in ("vault", "own/knowledge"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file():
                text = path.read_bytes().decode("utf-8", "backslashreplace")
                recording.keep("files", str(path.relative_to(root)), text)
    for folder in ("data", "own", "work", "home"):
        paths = (str(path.relative_to(root)) for path in (root / folder).rglob("*"))
        # The names of the remaining index segments depend on when tantivy last cleaned up.
        names = {re.sub(r"[0-9a-f]{16,32}(\.\d+)?(?=[./]|$)", "<HEX>", name) for name in paths}
        recording.keep("layout", folder, "\n".join(sorted(names)))


def _keep_helps(recording: Recording) -> None:
    """Record the reference, and `--help` of every command and of the subcommands listed in each help."""
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        command = waiting.pop(0)
        text = recording.command(*command, "--help", section="helps").out
        if len(command) < 2 and "positional arguments:" in text:
            listed = text.partition("positional arguments:")[2].partition("options:")[0]
            if re.match(r"\s+(COMMAND|SUBJECT|ACTION)\n", listed):
                waiting += [(*command, name) for name in re.findall(r"^    (\S+)", listed, re.MULTILINE)]
    from docs.generate import render_pages  # noqa: PLC0415

    recording.world.begin_step()
    for name, text in render_pages().items():
        recording.keep("reference", name, text)
