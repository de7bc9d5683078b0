"""A day with two clients: their transcripts grow while agents work, and a new session asks about yesterday.

`python -m tests.e2e.session_day` runs the story and prints the measured times.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from attrs import define, field

from tests.e2e.feeds import call_tool
from tests.e2e.process import Lithos, run_lithos, running_lithos, wait_until_well

#: A written sentence is found within this number of seconds (behaviour 327).
WITHIN: Final = 60.0
ROUNDS: Final = 15
CLAUDE: Final = "5e0c9e7a-7f5d-4a0e-9c9e-1d2f3a4b5c6d"
CODEX: Final = "019a2d7a-41c4-78b1-b7cc-a45d62a89cd5"
YESTERDAY: Final = datetime.now(UTC) - timedelta(days=1)
#: The decision in each client, and the question of the other client.
DECISIONS: Final = {
    "claude-code": (
        "Decision: invoices are numbered per shop and year, because the tax office wants no gaps.",
        "How are invoices numbered, and why?",
    ),
    "codex": (
        "We agreed that the oven timer counts down in seconds, since bakers misread the minutes.",
        "In which unit does the oven timer count down?",
    ),
}


@define
class Transcript:
    """A transcript that its client appends to. Each line arrives in two pieces."""

    client: str
    path: Path
    written: bytearray = field(factory=bytearray)
    minutes: int = 0

    def say(self, who: str, text: str) -> None:
        """Append one message."""
        self.minutes += 1
        at = (YESTERDAY + timedelta(seconds=self.minutes)).isoformat().replace("+00:00", "Z")
        line = (json.dumps(self._record(who, text, at)) + "\n").encode()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for piece in (line[: len(line) // 2], line[len(line) // 2 :]):
            with self.path.open("ab") as file:
                file.write(piece)
            self.written += piece

    def _record(self, who: str, text: str, at: str) -> Mapping[str, Any]:
        if self.client == "codex":
            kind = "input_text" if who == "user" else "output_text"
            message = {"type": "message", "role": who, "content": [{"type": kind, "text": text}]}
            if not self.written:
                meta = {"id": CODEX, "timestamp": at, "cwd": "/srv/made-up/bakery", "originator": "codex_cli"}
                return {"timestamp": at, "type": "session_meta", "payload": meta}
            return {"timestamp": at, "type": "response_item", "payload": message}
        content = text if who == "user" else [{"type": "text", "text": text}]
        message = {"id": f"msg_{self.minutes}", "role": who, "content": content}
        return {
            "type": who, "sessionId": CLAUDE, "cwd": "/srv/made-up/shop", "isSidechain": False,
            "uuid": f"u{self.minutes}", "timestamp": at, "message": message,
        }  # fmt: skip


@define
class Outcome:
    """Findings of the new sessions: seconds until each decision was found, its row, its text, and a note."""

    seconds: dict[str, float] = field(factory=dict)
    rows: dict[str, dict[str, Any]] = field(factory=dict)
    read: dict[str, dict[str, Any]] = field(factory=dict)
    briefings: dict[str, str] = field(factory=dict)
    source: str = ""
    are_unchanged: bool = False


def live_day(folder: Path) -> Outcome:
    """Let two agents work over MCP while transcripts grow, and ask about yesterday from new sessions."""
    home, outcome = folder / "home", Outcome()
    transcripts = {
        "claude-code": Transcript(
            "claude-code", home / ".claude" / "projects" / "-srv-made-up-shop" / f"{CLAUDE}.jsonl"
        ),
        "codex": Transcript(
            "codex", home / ".codex" / "sessions" / "2026" / "11" / "28" / f"rollout-{CODEX}.jsonl"
        ),
    }
    for each in transcripts.values():
        each.say("user", "Good morning.")
        each.say("user", "Let us begin.")
    env = {"HOME": str(home), "CLAUDE_CONFIG_DIR": "", "CODEX_HOME": ""}
    (folder / "data" / "knowledge").mkdir(parents=True)
    for client in transcripts:
        done = run_lithos("-d", folder / "data", "sessions", "add", client, env=env)
        assert done.returncode == 0, done.stderr
    with running_lithos(folder / "data", env=env) as server, ThreadPoolExecutor() as agents:
        wait_until_well(server)
        working = [agents.submit(_work, server, each) for each in transcripts.values()]
        for client, transcript in transcripts.items():
            _ask(server, transcript, client, outcome)
        for work in working:
            work.result()
        outcome.source = _note_of(server)
        outcome.are_unchanged = all(t.path.read_bytes() == bytes(t.written) for t in transcripts.values())
    return outcome


def _work(server: Lithos, transcript: Transcript) -> None:
    """Write notes and search, as an agent does. The transcript gets a line about each round."""
    for number in range(ROUNDS):
        title = f"{transcript.client} round {number}"
        written = call_tool(server, "lithos_write", title=title, content=f"Work of {title}.", agent="ann")
        assert written["status"] == "created", written
        call_tool(server, "lithos_search", query=f"work of round {number}")


def _ask(server: Lithos, transcript: Transcript, client: str, outcome: Outcome) -> None:
    """Let the client write its decision, and ask about it from a new session until it is found."""
    decision, question = DECISIONS[client]
    for number in range(5):
        transcript.say("user", f"An unrelated request, number {number}.")
        transcript.say("assistant", f"Done with request {number}.")
    transcript.say("assistant", decision)
    began = time.monotonic()
    while client not in outcome.rows:
        assert time.monotonic() - began < WITHIN, f"{client}: not found within {WITHIN} s"
        found = call_tool(server, "lithos_search", query=question, kinds=["session"], limit=1)["results"]
        if found and decision in found[0]["snippet"]:
            outcome.rows[client] = found[0]
        else:
            time.sleep(0.1)
    outcome.seconds[client] = time.monotonic() - began
    row = outcome.rows[client]
    outcome.read[client] = call_tool(server, "lithos_read", id=row["id"], turn=row["turn"])
    outcome.briefings[client] = call_tool(server, "lithos_context", query=question)["text"]


def _note_of(server: Lithos) -> str:
    """Return the source of a note that is written by a call which names the client's session."""
    named = {"Lithos-Session": CLAUDE, "Lithos-Project": "shop"}
    written = call_tool(
        server, "lithos_write", named, title="Invoices", content=DECISIONS["claude-code"][0], agent="claude"
    )
    read = call_tool(server, "lithos_read", id=written["id"])
    return str(read["metadata"].get("source", ""))


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        told = live_day(Path(place))
    for client, seconds in told.seconds.items():
        row = told.rows[client]
        sys.stdout.write(f"{client}: found after {seconds:.1f} s as turn {row['turn']} ({row['match']})\n")
    sys.stdout.write(f"source of a note: {told.source}\n")
