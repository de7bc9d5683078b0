"""Everything the product answers, recorded before a rebuilding and compared after it, byte for byte.

`python -m bench.golden record OUT --vault DIR` copies the vault, plays three servers on it and on data
directories of their own, runs every command, and writes `OUT/*.json`: sorted entries of what was asked and
the text that came back. `python -m bench.golden compare A B` prints what differs, by entry, and exits 1.
Two recordings of one commit are the same bytes: `bench/golden_world.py` leaves nothing to time and chance.

The product is used from outside alone: `lithos.cli.main`, in this process, and HTTP and stdio to the server
it starts. So the same script records code whose modules have moved; it imports none but that, and `docs.generate`.

Masked: the temporary folder, the server's port, process ids, what was measured in seconds or bytes of memory
and disk (values of such metrics and of their histogram buckets), versions of Python and of dependencies, the
machine's name and size.
"""

from __future__ import annotations

import argparse
import difflib
import html
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin

import trio
from attrs import define, field

from bench.golden_world import Done, World

#: The environment of a recording; all else of this machine's stays outside.
ENVIRONMENT: Final = {
    "PYTHONHASHSEED": "0", "TZ": "UTC", "LANG": "C.UTF-8", "COLUMNS": "100", "NO_COLOR": "1",
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false", "LITHOS_LOG_LEVEL": "error", "LITHOS_SEARCH__TIER": "static",
    "LITHOS_SERVER__LEGACY_TOOLS": "true", "PYTHONWARNINGS": "ignore",
}  # fmt: skip
RIGHTS: Final = ("read", "write", "admin")
#: Pages of the console with one shape of address that are fetched, and shapes' parts that vary.
ALIKE: Final = 4
_VARIABLE: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|rcpt_[0-9a-f]+|(?<==)[^&]+|(?<=/files/).*|(?<=/agents/)[^?]+")
_HREF: Final = re.compile(r'(?:href|data-address|src)="(/[^"]*)"')
#: A sample of a metric that was measured: name and labels stay.
_MEASURED: Final = re.compile(
    r"^(lithos_\w*(?:seconds_(?:bucket|sum)|_bytes\w*|_utilisation|startup_duration_seconds|free\w*)(?:\{.*\})?|(?:process|python)_\S+) .*$",
    re.MULTILINE,
)
_MASKS: Final = (
    (re.compile(r"(127\.0\.0\.1|localhost):\d{4,5}"), r"\1:<PORT>"),
    (re.compile(r'("(?:pid|port|size_bytes|free_bytes|bytes|duration_ms|took_ms|elapsed\w*|seconds)":\s*)[\d.]+'), r"\1<N>"),
    (re.compile(r"\b(pid|process) \d+"), r"\1 <PID>"),
    (re.compile(r"\b\d[\d.,]*( ?)(GiB|MiB|KiB|GB|MB|kB|ms|µs)\b"), r"<N>\1\2"),
)  # fmt: skip


@define(eq=False)
class Recording:
    """Entries by section, and the world in which they are made."""

    root: Path
    world: World
    sections: dict[str, dict[str, str]] = field(factory=dict)

    def keep(self, section: str, name: str, text: str) -> None:
        """Keep what came back; a repeated name gets a number."""
        entries = self.sections.setdefault(section, {})
        number = f"{len(entries):04} {self.mask(name)}"
        entries[number] = self.mask(text)

    def mask(self, text: str) -> str:
        """Without what cannot be the same."""
        text = _MEASURED.sub(r"\1 <N>", text.replace(str(self.root), "<TMP>"))
        for pattern, instead in _MASKS:
            text = pattern.sub(instead, text)
        return text

    def command(self, *arguments: str, section: str = "commands", text: str = "") -> Done:
        """Run a command without a server, and keep how it ended."""
        done = self.world.run(*arguments, text=text)
        self.keep(section, " ".join(arguments), done.text)
        return done

    def write(self, out: Path) -> None:
        """One file for each section."""
        out.mkdir(parents=True, exist_ok=True)
        for name, entries in self.sections.items():
            text = json.dumps(entries, ensure_ascii=False, indent=1, sort_keys=True)
            (out / f"{name}.json").write_text(text + "\n", encoding="utf-8", errors="backslashreplace")

    # -- a server ---------------------------------------------------------------------------------

    def serve(self, where: tuple[str, ...], drive: Callable[[Client], Awaitable[None]], *more: str) -> None:
        """Run `lithos serve` on HTTP; `drive` uses it, and then it is stopped."""
        failures: list[BaseException] = []

        async def driver() -> None:
            import httpx2  # noqa: PLC0415 - it must find the replaced modules

            while not sys.stdout.getvalue().endswith("}\n"):  # type: ignore[attr-defined]
                await trio.sleep(0.05)
            url = json.loads(sys.stdout.getvalue().splitlines()[-1])["url"]  # type: ignore[attr-defined]
            await trio.sleep(100)  # whatever it does after its start
            await self.world.next_second()
            limits = httpx2.Limits(max_keepalive_connections=0)
            try:
                async with httpx2.AsyncClient(base_url=url, timeout=None, limits=limits, verify=False) as http:
                    await drive(Client(self, http, where))
            except Exception as failure:  # noqa: BLE001 - told once the server is down
                failures.append(failure)
            os.kill(os.getpid(), signal.SIGTERM)

        arguments = (*where, "--json", "serve", "-t", "http", "-p", "0", "--no-watch", *more)
        done = self.world.run(*arguments, driver=driver)
        for failure in failures:
            raise failure
        self.keep("servers", " ".join(arguments), done.text)


@define(eq=False)
class Client:
    """Asks a running server."""

    recording: Recording
    http: Any
    where: tuple[str, ...]
    headers: Mapping[str, str] = {}

    async def rpc(self, section: str, method: str, params: Mapping[str, Any], note: str = "") -> Any:
        """Send to `/mcp`, keep the bytes of the answer; its result."""
        self.recording.world.begin_step()
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
        response = await self.http.post("/mcp", json=body, headers={**headers, **self.headers})
        name = f"{note}{method} {json.dumps(params, ensure_ascii=False)}"
        self.recording.keep(section, name, f"{response.status_code} {response.text}")
        await self.recording.world.next_second()
        return response.json().get("result", {}) if response.status_code == 200 else {}

    async def tool(self, section: str, name: str, arguments: Mapping[str, Any], note: str = "") -> Any:
        """Call a tool; its answer."""
        result = await self.rpc(section, "tools/call", {"name": name, "arguments": arguments}, note)
        return result.get("structuredContent") or {"status": "error"}

    async def get(self, section: str, address: str, method: str = "GET", **options: Any) -> Any:
        """Keep status, headers and text of an address."""
        self.recording.world.begin_step()
        response = await self.http.request(method, address, headers=self.headers, **options)
        kept = sorted(f"{key}: {value}" for key, value in response.headers.items() if key not in ("date", "content-length"))
        self.recording.keep(section, f"{method} {address}", "\n".join([str(response.status_code), *kept, "", response.text]))
        await self.recording.world.next_second()
        return response

    async def stream(self, section: str, address: str, until: str) -> None:
        """Keep the text of an event stream up to the line before `until`, or what has come after a while."""
        self.recording.world.begin_step()
        received = ""
        with trio.move_on_after(5):
            async with self.http.stream("GET", address, headers=self.headers) as response:
                async for part in response.aiter_text():
                    received += part
                    if until in received:
                        break
        self.recording.keep(section, f"GET {address}", received)
        await self.recording.world.next_second()

    async def beside(self, *arguments: str) -> None:
        """A command that asks this server."""
        done = await self.recording.world.run_beside(*self.where, *arguments)
        self.recording.keep("commands-beside", " ".join(arguments), done.text)

    async def crawl(self) -> None:
        """Every page that links lead to from the console's overview, some of each shape."""
        waiting, seen, counts = ["/", "/console", "/console/", "/console/components", "/console/undo?agent=ann&span=today",
                                 "/console/notes/none", "/console/search?q=staking", "/console/graph?q=staking"], set[str](), dict[str, int]()  # fmt: skip
        while waiting:
            address = waiting.pop(0)
            shape = _VARIABLE.sub("*", address)
            if address in seen or counts.get(shape, 0) >= ALIKE or address == "/console/events":
                continue
            seen.add(address)
            counts[shape] = counts.get(shape, 0) + 1
            response = await self.get("pages", address)
            if response.headers.get("content-type", "").startswith("text/html"):
                found = (html.unescape(each).partition("#")[0] for each in _HREF.findall(response.text))
                waiting += [urljoin(address, each) for each in found if each.startswith("/console")]


def record(out: Path, vault: Path) -> None:
    """Play everything, and write what came back."""
    world = World()
    world.enter()
    root = Path(tempfile.mkdtemp(prefix="lithos-golden-"))
    os.environ["HOME"] = str(root / "home")
    try:
        (root / "home").mkdir()
        os.chdir(root)
        _copy(vault, root / "vault")
        recording = Recording(root, world)
        _play_vault(recording, ("-d", str(root / "data"), "--vault", str(root / "vault")))
        _play_own(recording, ("-d", str(root / "own")))
        for profile in ("core", "standard", "full"):
            _play_profile(recording, ("-d", str(root / "own")), profile)
        _keep_files(recording)
        _keep_helps(recording)
        recording.write(out)
        print(", ".join(f"{len(entries)} {name}" for name, entries in recording.sections.items()))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _copy(vault: Path, target: Path) -> None:
    """A copy whose files have times of change of their own, always the same."""
    shutil.copytree(vault, target)
    for number, path in enumerate(sorted(target.rglob("*"))):
        os.utime(path, (1_760_000_000 + number, 1_760_000_000 + number))


def _play_vault(recording: Recording, where: tuple[str, ...]) -> None:
    from bench.golden_calls import Script  # noqa: PLC0415

    async def first(client: Client) -> None:
        async def ask(name: str, arguments: dict[str, Any]) -> Any:
            return await client.tool("calls-vault", name, arguments)

        tools = (await client.rpc("tools", "tools/list", {}, "vault "))["tools"]
        script = Script(ask)
        await script.run()
        left_out = {tool["name"] for tool in tools} ^ script.accepted.keys()
        assert not left_out, left_out
        await _look_around(client)
        await script.run_odd(tools)
        await client.get("endpoints", "/metrics")
        await client.stream("events", "/events?since=0", "no such text")

    async def second(client: Client) -> None:
        for tool, arguments in (("stats", {}), ("list", {"limit": 200}), ("history", {"deleted": True}),
                                ("search", {"query": "edited by hand"}), ("read", {"path": "what/new.md"})):  # fmt: skip
            await client.tool("calls-second", f"lithos_{tool}", arguments)
        await client.stream("events", "/events?since=0", "no such text")
        await _commands_beside(client)

    recording.serve(where, first, "--tools", "full")
    vault = recording.root / "vault"
    for path, text in (("what/staking.md", "\nEdited by hand.\n"), ("what/new.md", "---\ntags: [a, b]\n---\n# New\n\n[[Blockchain]]\n"),
                       ("what/broken.md", "---\ntags: [a\n---\n# Broken\n")):  # fmt: skip
        with (vault / path).open("a") as file:
            file.write(text)
        os.utime(vault / path, (1_770_000_000, 1_770_000_000))
    (vault / "what/gpl.md").unlink()
    (vault / "what/lgpl.md").rename(vault / "what/lesser.md")
    recording.serve(where, second)
    _commands(recording, where)


async def _look_around(client: Client) -> None:
    """Pages, other endpoints, prompts and resources, while the notes are as people left them."""
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


async def _commands_beside(client: Client) -> None:
    for line in ("stats", "--json stats", "search staking", "--json search staking -n 2", "brief staking --agent ann",
                 "--json brief staking", "inspect health", "inspect tasks --all", "inspect agents", "audit -n 3",
                 "history what/staking.md", "events --no-follow --since 0 --limit 5", "wait --since 0 --types note.created --timeout 1",
                 "checkpoint --text Learned --agent ann", "undo --agent bob --since 2026-03-02T00:00:00Z --dry-run",
                 "reconcile --dry-run", "doctor", "--json validate"):  # fmt: skip
        await client.beside(*line.split(" "))


def _commands(recording: Recording, where: tuple[str, ...]) -> None:
    """Every command that needs no server."""
    task = recording.sections["calls-vault"]
    del task
    (recording.root / "questions.yaml").write_text(
        "- query: proof of stake\n  expect: [what/proof-of-stake.md]\n- query: andy\n  expect: [who/andy.md]\n"
    )
    for line in (
        "stats", "search staking", "search staking --fulltext -n 2", "search staking --semantic", "search zzzz",
        "inspect health", "inspect agents", "inspect tasks", "inspect tasks --all", "inspect doc what/staking.md",
        "inspect doc what/staking.md --content", "inspect doc nowhere", "audit", "audit -a ann -n 3",
        "history what/staking.md", "history what/staking.md --diff 1", "history --deleted", "history nowhere",
        "undo --agent bob --since 2026-03-02T00:00:00Z --dry-run", "validate", "validate --all", "validate --strict",
        "doctor", "export", "evaluate questions.yaml", "evaluate questions.yaml --mode fulltext", "reconcile --dry-run",
        "reconcile --scope graph --dry-run", "recalibrate-salience --dry-run", "extract-entities --dry-run",
        "restore-note what/staking.md --version 1", "undo --agent bob --since 2026-03-02T00:00:00Z",
        "token list", "token create ann --agent ann --rights write", "token list", "token revoke ann", "brief staking",
        "events --no-follow", "connect", "connect --list", "reindex", "reconcile", "backup backup", "restore backup",
    ):  # fmt: skip
        words = line.split(" ")
        recording.command(*where, *words)
        if words[0] not in ("restore-note", "undo", "backup", "restore", "token"):
            recording.command(*where, "--json", *words)
    for client in ("claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini-cli", "zed", "opencode"):
        recording.command(*where, "connect", client)
    for line in ("skill", "completion bash", "completion zsh", "bundle bundle", "nonsense", "search"):
        recording.command(*line.split(" "))


def _play_own(recording: Recording, where: tuple[str, ...]) -> None:
    from bench.golden_calls import Script  # noqa: PLC0415

    recording.command(*where, "import", str(recording.root / "vault"), "--dry-run")
    recording.command(*where, "import", str(recording.root / "vault"))

    async def play(client: Client) -> None:
        async def ask(name: str, arguments: dict[str, Any]) -> Any:
            return await client.tool("calls-own", name, arguments)

        await Script(ask).run()
        await client.stream("events", "/events?since=0", "no such text")
        await client.get("endpoints", "/metrics")

    recording.serve(where, play, "--tools", "full")


def _play_profile(recording: Recording, where: tuple[str, ...], profile: str) -> None:
    """What each right lists, may and may not, in one profile."""
    tokens = {
        right: json.loads(recording.command(*where, "--json", "token", "create", f"{profile}-{right}", "--rights", right).out)["token"]
        for right in RIGHTS
    }  # fmt: skip

    async def play(client: Client) -> None:
        await client.rpc("tools", "tools/list", {}, f"{profile} nobody ")
        await client.get("endpoints", "/console/")
        for right, token in tokens.items():
            named = Client(client.recording, client.http, where, {"Authorization": f"Bearer {token}"})
            tools = (await named.rpc("tools", "tools/list", {}, f"{profile} {right} "))["tools"]
            for tool in ("lithos_stats", "lithos_agent_register", "lithos_delete", "lithos_no_such", tools[0]["name"]):
                await named.tool("rights", tool, {"id": "x"} if "agent" in tool else {}, f"{profile} {right} ")
            for address in ("/health", "/metrics", "/audit"):
                await named.get("rights", address)

    recording.serve(where, play, "--tools", profile)
    for right in RIGHTS:
        recording.command(*where, "token", "revoke", f"{profile}-{right}")


def _keep_files(recording: Recording) -> None:
    root = recording.root
    for folder in ("vault", "own/knowledge"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file():
                recording.keep("files", str(path.relative_to(root)), path.read_bytes().decode("utf-8", "backslashreplace"))
    for folder in ("data", "own", "backup", "bundle", "home"):
        names = sorted(str(path.relative_to(root)) for path in (root / folder).rglob("*") if "/knowledge/" not in str(path))
        recording.keep("layout", folder, "\n".join(re.sub(r"[0-9a-f]{32}(?=\.|$|/)", "<HEX>", name) for name in names))


def _keep_helps(recording: Recording) -> None:
    """`--help` of every command and subcommand, found in the help above it; and the reference."""
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


def compare(one: Path, other: Path) -> int:
    """Print the entries that differ; 1 if any does."""
    names = sorted({path.name for folder in (one, other) for path in folder.glob("*.json")})
    different = 0
    for name in names:
        first, second = (json.loads(path.read_text()) if (path := folder / name).exists() else {} for folder in (one, other))
        for entry in sorted({*first, *second}):
            if first.get(entry) == second.get(entry):
                continue
            different += 1
            print(f"=== {name}: {entry[:300]}")
            texts = [_in_lines(side.get(entry, "(missing)")) for side in (first, second)]
            for line in list(difflib.unified_diff(*texts, str(one), str(other), lineterm="", n=1))[2:40]:
                print(line[:500])
    print(f"{different} entries differ" if different else "nothing differs")
    return int(bool(different))


def _in_lines(text: str) -> list[str]:
    """Lines, of JSON one for each value."""
    return re.sub(r'(?<=[\]}"\d])(,)(?=["{\[])', r"\1\n", text).split("\n")


def main() -> None:
    """Record or compare."""
    parser = argparse.ArgumentParser(prog="python -m bench.golden", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    recording = actions.add_parser("record")
    recording.add_argument("out", type=Path)
    recording.add_argument("--vault", type=Path, required=True)
    comparing = actions.add_parser("compare")
    comparing.add_argument("one", type=Path)
    comparing.add_argument("other", type=Path)
    options = parser.parse_args()
    if options.action == "compare":
        raise SystemExit(compare(options.one, options.other))
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        paths = os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH"))))
        environment = {**kept, **ENVIRONMENT, "PYTHONPATH": paths}
        os.execve(sys.executable, [sys.executable, "-m", "bench.golden", *sys.argv[1:]], environment)  # noqa: S606
    record(options.out.resolve(), options.vault.resolve())


if __name__ == "__main__":
    main()
