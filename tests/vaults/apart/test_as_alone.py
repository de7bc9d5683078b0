"""One of three vaults, which must answer byte for byte like a vault on its own server."""

from __future__ import annotations

import json
import re
import shutil
import sys
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from difflib import unified_diff
from hashlib import md5
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from attrs import define, field

from bench.golden_calls import Answer, Script
from tests.servers import Clock
from tests.vaults.apart.hosting import (
    PATIENCE,
    Door,
    alone,
    body_of,
    config_of,
    hosting,
    let_in,
    put,
    status_of,
)

TOKEN: Final = "token-of-work"
ATTEMPTS: Final = 3
LAST: Final = "The last of all notes"
NOTES: Final = {
    "what/blockchain.md": "---\ntags: [BaseTech, kb]\n---\n# Blockchain\n\nA chain of [[staking]] blocks.\n",
    "what/staking.md": "---\ntags: [kb]\n---\n# Staking\n\nProof of stake lets holders vote. See [[andy]].\n",
    "what/consensus.md": "# Consensus\n\nNodes agree by proof of work or by consensus of [[blockchain]].\n",
    "what/coda.md": "# Coda\n\nAn interlock browser keeps the whole chain small.\n",
    "what/mining.md": "# Mining\n\nProof of work burns energy in halls full of machines.\n",
    "what/wallets.md": "# Wallets\n\nKeys are kept in a wallet, hot or cold.\n",
    "what/oracles.md": "# Oracles\n\nThey bring prices of the world to contracts.\n",
    "what/bridges.md": "# Bridges\n\nThey carry coins to other ledgers.\n",
    "how/run-solana-node.md": "# Run a node\n\n## Machine\n\nMuch memory.\n\n## Start\n\nRun it.\n",
    "who/andy.md": "---\ntags: [Legal]\n---\n# Andy\n\nWorks on adversarial advertising.\n",
}
#: Pages, files and other URLs of a vault endpoint.
ADDRESSES: Final = (
    "/audit", "/audit?limit=3&titles=true", "/audit?after=never", "/metrics", "/nowhere",
    "/reconcile", "/import", "/messages/", "/sse/x",
)  # fmt: skip
PAGES: Final = (
    "", "search?q=staking", "search?q=staking&mode=retrieve", "notes", "find?q=sta",
    "notes/by-path?path=what/staking.md",
    "notes/by-path?path=nowhere.md", "graph?q=chain", "review", "care", "copies", "tasks", "agents",
    "agents/ann", "receipts", "attachments", "files/nothing.png", "identity", "undo", "nowhere",
    "feed?partial=1",
)  # fmt: skip
#: Values that differ between two servers: ids in several formats, session secrets and measured numbers.
_IDS: Final = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\b(?:rcpt|edge|prop|p)_[0-9a-f]{8,}|\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b"
)
#: Times. Event ids also count as times, because they start at the time of the first event.
_TIMES: Final = re.compile(
    r"(?<![\d.])1\d{12,15}\b|\b\d(?:,\d{3}){4,}\b|20\d\d-\d\d-\d\dT[0-9:.]+(?:Z|\+00:00)|(?<=date: )[^\r]+"
    r"|(?<=retry-after: )\d+"
)
_SECRETS: Final = re.compile(
    r'(?<=lithos_session=)[\w-]+|(?<=name="csrf" value=")[\w-]+|(?<=name="once" value=")[\w-]+'
)
_SCORES: Final = re.compile(r'(?<=score\":)[0-9.e-]+|(?<=score\\":)[0-9.e-]+')
#: The position of this header differs in pages that are moved below a prefix.
_LENGTH: Final = re.compile(r"content-length: \d+\r\n")
#: Metrics that depend on time and on the machine.
_MEASURED: Final = re.compile(
    r"^\w*(?:seconds|bytes|python|process|lag|head_seq|queue_depth)\w*(?:\{[^}]*\})? .*\n", re.MULTILINE
)


@define
class Recording:
    """Recorded responses of an endpoint. Numbers in order of first appearance replace the ids."""

    door: Door
    base: str
    entries: list[tuple[str, str]] = field(factory=list)
    ids: dict[str, str] = field(factory=dict)
    #: Scores of notes that change depend on the moment when the index merges its segments.
    is_changing: bool = True

    def keep(self, asked: str, received: bytes) -> None:
        """Store a response without the parts that differ between two runs."""
        text = received.decode().replace(self.door.url, "URL")
        text = _MEASURED.sub("", text.replace(f"{self.base}/", "/") if self.base else text)
        if text.startswith("HTTP/1.1 200") and "\n# TYPE" in text:  # series are ordered by their first call
            head, _, body = text.partition("\r\n\r\n")
            text = "\r\n\r\n".join([head, "\n".join(sorted(body.split("\n")))])
        text = _SCORES.sub("~", text) if self.is_changing else text
        for pattern in (_TIMES, _SECRETS):
            text = pattern.sub("~", text)
        text = _IDS.sub(lambda found: self.ids.setdefault(found[0], f"id {len(self.ids)}"), text)
        self.entries.append((asked, _LENGTH.sub("", text)))

    async def ask(self, name: str, arguments: dict[str, Any]) -> Answer:
        """Call a tool for the script after all changes are indexed. Argument errors are not returned."""
        await self.door.server("work").searchable()
        received = await self.door.call(f"{self.base}/mcp", TOKEN, name, **arguments)
        self.keep(f"{name} {list(arguments)}", received)
        answer: Answer = json.loads(body_of(received)).get("result", {}).get("structuredContent") or {
            "status": "error"
        }
        return answer

    async def get(self, path: str, **more: Any) -> bytes:
        """Fetch a path and record the response."""
        received = await self.door.exchange(f"{self.base}{path}", **{"token": TOKEN} | more)
        self.keep(path, received)
        return received


@define
class Ids:
    """Fixed ids, which are equal in every run.

    Ids decide the order of equally ranked notes, and they cost tokens.
    """

    drawn: Counter[str] = field(factory=Counter)

    def draw(self) -> uuid.UUID:
        """Return the next id. Each kind of object has its own numbers."""
        code = sys._getframe(1).f_code
        kind = f"{code.co_filename}:{code.co_firstlineno}"
        self.drawn[kind] += 1
        return uuid.UUID(bytes=md5(f"{kind} {self.drawn[kind]}".encode()).digest(), version=4)


async def play_tools(recording: Recording) -> None:
    """Call every tool with every argument, and list the MCP features."""
    for method in (
        "initialize",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
        "nothing",
    ):
        params = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        received = await recording.door.rpc(
            f"{recording.base}/mcp", TOKEN, method, **(params if method == "initialize" else {})
        )
        recording.keep(method, received)
        if method == "tools/list":
            tools = json.loads(body_of(received))["result"]["tools"]
    script = Script(recording.ask)
    await script.run()
    await script.run_odd([tool for tool in tools if tool["name"] in script.accepted])
    for uri in ("lithos://tags", "lithos://stats", "lithos://note/what/staking.md", "lithos://nothing"):
        received = await recording.door.rpc(f"{recording.base}/mcp", TOKEN, "resources/read", uri=uri)
        recording.keep(uri, received)


async def play_addresses(recording: Recording) -> None:
    """Fetch all addresses except MCP and the console. Then read the journal."""
    for path in ADDRESSES:
        await recording.get(path)
        await recording.get(path, method="POST", body=b"{}")
    write = {"title": LAST, "content": "Done.", "agent": "ann"}
    recording.keep("last", await recording.door.call(f"{recording.base}/mcp", TOKEN, "lithos_write", **write))
    recording.keep("/events", await journal(recording.door, f"{recording.base}/events?since=0"))


async def play_pages(recording: Recording) -> None:
    """Log in if necessary. Then fetch the console pages, the health page, and the redirect to the console."""
    await recording.get("/health")
    await recording.get("/")
    form = ("Content-Type: application/x-www-form-urlencoded",)
    body = f"token={TOKEN}&agent=".encode()
    login = await recording.door.exchange("/console/login", method="POST", body=body, fields=form)
    own = f"{recording.base}/console"
    (cookie,) = re.findall(rf"(lithos_session=[\w-]+)(?=;[^\r]*Path={own};)", login.decode())
    for page in PAGES:
        await recording.get(f"/console/{page}", token=None, fields=(f"Cookie: {cookie}",))


async def journal(door: Door, path: str) -> bytes:
    """Return the event stream up to the event of the last note."""
    async with await trio.open_tcp_stream(*door.address) as stream:
        await stream.send_all(
            f"GET {path} HTTP/1.1\r\nHost: a.localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        received = b""
        with trio.fail_after(PATIENCE):
            while LAST.encode() not in received or not received.endswith(b"\n\n\r\n"):
                part = await stream.receive_some()
                assert part, received[-1000:]
                received += bytes(part)
    # Chunk boundaries depend on the arrival times of events.
    return re.sub(rb"\r\n[0-9a-f]+\r\n", b"", received)


def set_up(root: Path) -> dict[str, Any]:
    """Create the files of three vaults before any server runs."""
    shutil.rmtree(root, ignore_errors=True)
    put(root / "work", NOTES)
    put(root / "home", {"basil.md": "Basil wants little water, and staking.", "what/staking.md": "Of tents."})
    put(root / "third", {"what/blockchain.md": "A chain of other blocks."})
    for name in ("work", "home", "third"):
        let_in(root / f"{name}-data", f"token-of-{name}")
    return {name: config_of(root / name, root / f"{name}-data") for name in ("home", "work", "third")}


def differences(one: Recording, other: Recording) -> Iterator[tuple[str, str]]:
    """Yield each difference between two recordings of the same calls: call number and description."""
    both = zip(one.entries, other.entries, strict=True)
    for number, ((asked, *told), (also, *heard)) in enumerate(both):
        assert asked == also
        # The digits of a cursor depend on the start time, and they are counted as tokens.
        uncounted = r'tokens\\*":\d+' if "'since'" in asked else "$^"
        first, second = (re.sub(uncounted, "", text) for text in (*told, *heard))
        if first != second:
            pieces = (re.sub(r"([,>])", r"\1\n", text).split("\n") for text in (first, second))
            lines = [line[:300] for line in unified_diff(*pieces, n=1, lineterm="")][2:14]
            yield f"{number} {asked}", "\n".join([asked, *lines])


@pytest.mark.slow
@pytest.mark.takes(40)
@pytest.mark.parametrize(
    ("base", "play"),
    [
        ("/v/work", play_tools),
        ("/v/work", play_addresses),
        ("/v/work", play_pages),
        ("", play_tools),
        ("", play_addresses),
    ],
)
async def test_one_of_three_vaults_answers_like_a_single_vault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str, play: Callable[[Recording], Awaitable[None]]
) -> None:
    """behaviour 293: the vault's own endpoint and the root both answer a token of this vault.

    Memory learns in the background and may be late on a busy machine. Therefore only a repeated difference
    counts.
    """
    ids = Ids()
    monkeypatch.setattr(uuid, "uuid4", ids.draw)
    again: dict[str, str] = {}
    for attempt in range(ATTEMPTS):
        root = tmp_path / "all"
        async with alone(set_up(root)["work"], clock=Clock()) as door:
            expected = Recording(door, "")
            ids.drawn.clear()
            await play(expected)
        async with hosting(set_up(root), clock=Clock()) as hosted:
            recorded = Recording(hosted, base)
            ids.drawn.clear()
            await play(recorded)
        assert len(expected.entries) >= 20
        assert all(status_of(text.encode()) for _, text in expected.entries)
        found = dict(differences(expected, recorded))
        again = {asked: told for asked, told in found.items() if not attempt or asked in again}
        if not again:
            return
    assert not again, f"{len(again)} of {len(expected.entries)} differ:\n" + "\n\n".join(
        [*again.values()][:25]
    )
