"""The recordings of `bench.golden`: sections of entries, and a client that fills them from a server."""

from __future__ import annotations

import html
import io
import json
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin

import trio
from attrs import define, field

from bench.golden_world import Done, World

#: Maximum number of console pages to fetch per URL shape, and the parts of a URL that may vary within a
#: shape.
ALIKE: Final = 4
_VARIABLE: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27}|rcpt_[0-9a-f]+|(?<==)[^&]+|(?<=/files/).*|(?<=/agents/)[^?]+"
)
#: Pages to record even if no link leads to them.
_PAGES: Final = """
/ /console /console/ /console/components /console/feed /console/login /console/notes/none /console/nothing
/console/notes/by-path?path=what/blockchain.md /console/files/what/blockchain.md
/console/receipts?agent_id=ann /console/undo?agent=ann&span=today /console/search?q=staking
/console/graph?q=staking
"""
#: Headers that are not recorded.
_UNKEPT: Final = ("date", "content-length")
_HREF: Final = re.compile(r'(?:href|data-address|src)="(/[^"]*)"')
#: A measured sample of a metric. Only its name and labels are recorded.
_MEASURED: Final = re.compile(
    r"^((?:lithos_\w*(?:seconds_(?:bucket|sum)|_bytes\w*|_utilisation|startup_duration_seconds|free\w*)"
    r"|process_\w+|python_\w+)(?:\{.*\})?) .*$",
    re.MULTILINE,
)
_MASKS: Final = (
    (re.compile(r"(127\.0\.0\.1|localhost):\d{4,5}"), r"\1:<PORT>"),
    (re.compile(r'("(?:pid|port|\w*bytes|\w*_ms|elapsed\w*|\w*seconds)":\s*)[\d.]+'), r"\1<N>"),
    # Replaces the check-out time of a file in the package.
    (re.compile(r"^(etag|last-modified): .*$", re.MULTILINE), r"\1: <TIME>"),
    # Replaces the modification time of an index file that tantivy wrote.
    (re.compile(r'(_last_updated\\?":\s*\\?")[^"\\]+'), r"\1<TIME>"),
    (re.compile(r"\b(pid|process) \d+"), r"\1 <PID>"),
    (re.compile(r"\b\d[\d.,]*( ?)(GiB|MiB|KiB|GB|MB|kB|ms|µs|inodes|bytes)\b"), r"<N>\1\2"),
)
#: The system page consists of measurements. Its numbers are therefore not recorded.
_UNSTEADY: Final = "/console/system"
_NUMBERS: Final = re.compile(r'(?<=points=")[^"]*|(?<![\w#])\d[\d.,]*')


@define(eq=False)
class Recording:
    """The entries by section, and the world in which they are recorded."""

    root: Path
    world: World
    sections: dict[str, dict[str, str]] = field(factory=dict)

    def keep(self, section: str, name: str, text: str) -> None:
        """Record a text. If a name is repeated, it gets a number."""
        entries = self.sections.setdefault(section, {})
        entries[f"{len(entries):04} {self.mask(name)}"] = self.mask(text)

    def mask(self, text: str) -> str:
        """Return the text with masks in place of values that differ between runs."""
        text = text.replace(str(self.root), "<TMP>").replace(sys.prefix, "<VENV>")
        text = _MEASURED.sub(r"\1 <N>", text)
        for pattern, instead in _MASKS:
            text = pattern.sub(instead, text)
        return text

    def command(self, *arguments: str, section: str = "commands", text: str = "") -> Done:
        """Run a command while no server runs, and record its output."""
        done = self.world.run(*arguments, text=text)
        self.keep(section, " ".join(arguments), done.text)
        return done

    def write(self, out: Path) -> None:
        """Write one file per section."""
        out.mkdir(parents=True, exist_ok=True)
        for name, entries in self.sections.items():
            text = json.dumps(entries, ensure_ascii=False, indent=1, sort_keys=True)
            (out / f"{name}.json").write_text(text + "\n", encoding="utf-8", errors="backslashreplace")

    def serve(self, where: tuple[str, ...], drive: Callable[[Client], Awaitable[None]], *more: str) -> None:
        """Run `lithos serve` with HTTP while `drive` uses the server. Then stop the server."""
        failures: list[BaseException] = []

        def printed() -> str:
            assert isinstance(sys.stdout, io.StringIO)
            return sys.stdout.getvalue()

        async def driver() -> None:
            import httpx2  # noqa: PLC0415 - it must find the replaced modules

            while not printed().endswith("}\n"):  # noqa: ASYNC110
                await trio.sleep(0.05)
            url = json.loads(printed().splitlines()[-1])["url"]
            await trio.sleep(100)  # time for any work after the start
            await self.world.next_second()
            limits = httpx2.Limits(max_keepalive_connections=0)
            try:
                options = {"base_url": url, "timeout": None, "limits": limits, "verify": False}
                async with httpx2.AsyncClient(**options) as http:
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
    """A client of a running server. It records the answers."""

    recording: Recording
    http: Any
    where: tuple[str, ...]
    headers: Mapping[str, str] = {}

    async def rpc(self, section: str, method: str, params: Mapping[str, Any], note: str = "") -> Any:
        """Send a request to `/mcp` and record the bytes of the answer. Return the result in it."""
        self.recording.world.begin_step()
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
        response = await self.http.post("/mcp", json=body, headers={**headers, **self.headers})
        name = f"{note}{method} {json.dumps(params, ensure_ascii=False)}"
        self.recording.keep(section, name, f"{response.status_code} {response.text}")
        await self.recording.world.next_second()
        return response.json().get("result", {}) if response.status_code == 200 else {}

    async def tool(self, section: str, name: str, arguments: Mapping[str, Any], note: str = "") -> Any:
        """Call a tool and return its answer."""
        result = await self.rpc(section, "tools/call", {"name": name, "arguments": arguments}, note)
        return result.get("structuredContent") or {"status": "error"}

    async def get(self, section: str, address: str, method: str = "GET", **options: Any) -> Any:
        """Record the status, headers and text of a URL."""
        self.recording.world.begin_step()
        response = await self.http.request(method, address, headers=self.headers, **options)
        lines = sorted(f"{key}: {value}" for key, value in response.headers.items() if key not in _UNKEPT)
        text = response.text.replace(str(self.recording.root), "<TMP>")
        text = _NUMBERS.sub("<N>", text) if address.startswith(_UNSTEADY) else text
        self.recording.keep(
            section, f"{method} {address}", "\n".join([str(response.status_code), *lines, "", text])
        )
        await self.recording.world.next_second()
        return response

    async def stream(self, section: str, address: str, until: str) -> None:
        """Record an event stream up to the line before `until`. After a timeout, record what has arrived."""
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
        """Run a command that queries this server."""
        done = await self.recording.world.run_beside(*self.where, *arguments)
        self.recording.keep("commands-beside", " ".join(arguments), done.text)

    async def crawl(self) -> None:
        """Record pages that links from the console overview lead to, a few of each shape."""
        waiting, seen, counts = _PAGES.split(), set[str](), dict[str, int]()
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
