"""People's programs at the notes beside agents, for minutes: whether every saved text can be accounted for.

`python -m bench.editors --minutes 1`. An editor that saves in place in two pieces, one that saves atomically
and a sync client (its own temporary name, mtime set back, sometimes a deletion) each keep some notes, to
which they add numbered lines; agents patch, write and delete all of them through MCP. At the end each line
must be in its file, in `.lithos/displaced/` or still kept beside the notes, or its own program left it out
knowingly, or an agent deleted the note after it was saved. Exit 1 when one is lost.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import trio
from attrs import Factory, define

from bench.client import RawClient
from bench.report import print_report
from bench.server import Serving, data_directory, serving

#: Notes of each program.
NOTES = 3
AGENTS = 4
#: Lines of its own that a program keeps in a note; older ones it leaves out.
LINES = 60
#: Seconds between two pieces of one save.
PIECES = 0.03
#: Seconds after which everything displaced is settled.
SETTLING = 4.0
LINE = re.compile(r"line-\w+-\d+")


@define
class Note:
    """A note of one program: the lines it saved with the time of each, and those it left out knowingly."""

    title: str
    path: Path
    saved: dict[str, float] = Factory(dict)
    left_out: set[str] = Factory(set)
    #: When agents had deleted it. A call may wait for seconds for a program that saves: what was saved and
    #: indexed meanwhile goes with the note.
    deletions: list[float] = Factory(list)
    id: str = ""


def in_pieces(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        time.sleep(PIECES)
        file.write(text[len(text) // 2 :])


def atomically(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.swp")
    temporary.write_text(text)
    temporary.rename(path)


def as_sync_client(path: Path, text: str) -> None:
    temporary = path.with_name(f"~sync-{path.name}.part")
    temporary.write_text(text)
    before = time.time() - random.uniform(1, 1_000)
    os.utime(temporary, (before, before))
    temporary.rename(path)


PROGRAMS: dict[str, Callable[[Path, str], None]] = {
    "pieces": in_pieces,
    "atomic": atomically,
    "sync": as_sync_client,
}


def edit(note: Note, program: str, number: int, dice: random.Random) -> None:
    """Read the note, add a line to what it says, save it. Blocks."""
    line = f"line-{program}-{number}"
    try:
        text = note.path.read_text()
    except FileNotFoundError:
        text = f"# {note.title}\n"
    if program == "sync" and dice.random() < 0.03:
        there = set(LINE.findall(text))
        note.path.unlink(missing_ok=True)
        note.left_out |= there | set(note.saved)
        return
    own = LINE.findall(text)
    if len(own) > LINES:
        dropped = set(own[: LINES // 2])
        note.left_out |= dropped
        text = "\n".join(each for each in text.split("\n") if each.strip() not in dropped)
    PROGRAMS[program](note.path, f"{text.rstrip()}\n{line}\n")
    note.saved[line] = time.monotonic()


async def be_program(notes: list[Note], program: str, until: float) -> None:
    dice, number = random.Random(program), 0
    while trio.current_time() < until:
        number += 1
        await trio.to_thread.run_sync(edit, dice.choice(notes), program, number, dice)
        await trio.sleep(dice.uniform(0.0, 0.15))


async def be_agent(
    name: str, server: Serving, notes: list[Note], until: float, kinds: list[str], seen: Counter[str]
) -> None:
    dice = random.Random(name)
    async with RawClient(server.host, server.port) as client:
        while trio.current_time() < until:
            note, kind = dice.choice(notes), dice.choice(kinds)
            answer = await _do(client, kind, note, name, dice)
            seen[f"{kind} {answer.get('status', answer.get('code', 'ok'))}"] += 1
            await trio.sleep(dice.uniform(0.0, 0.05))


async def _do(client: RawClient, kind: str, note: Note, name: str, dice: random.Random) -> dict[str, Any]:
    if kind == "patch":
        arguments = {"id": note.id, "agent": name, "tags": [f"t{dice.randrange(1000)}"]}
        answer = await _call(client, "lithos_note_update", arguments)
        if answer.get("status") != "error":
            return answer
    read = await _call(client, "lithos_read", {"path": note.path.name, "agent_id": name})
    if "content" not in read:
        return read
    note.id = str(read["id"])
    if kind == "patch":
        return answer
    if kind == "write":
        arguments = {
            "id": note.id,
            "title": read["title"],
            "content": f"{read['content']}\nagent {name}"[-20_000:],
            "agent": name,
            "expected_version": read["metadata"]["version"],
        }
        return await _call(client, "lithos_write", arguments)
    if dice.random() > 0.05:
        return {"status": "spared"}
    answer = await _call(client, "lithos_delete", {"id": note.id, "agent": name})
    if answer.get("status") != "error":
        note.deletions.append(time.monotonic())
    return answer


async def _call(client: RawClient, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = json.loads(await client.exchange(tool, arguments))["result"]
    content: dict[str, Any] = result.get("structuredContent") or json.loads(result["content"][0]["text"])
    return content


async def run(server: Serving, data: Path, options: argparse.Namespace) -> dict[str, Any]:
    notes: dict[str, list[Note]] = {}
    async with RawClient(server.host, server.port) as client:
        for program in PROGRAMS:
            for number in range(NOTES):
                title = f"{program}-{number}"
                note = Note(title, data / "knowledge" / f"{title}.md")
                arguments = {"title": title, "content": "text", "agent": "begin"}
                note.id = str((await _call(client, "lithos_write", arguments))["id"])
                notes.setdefault(program, []).append(note)
    until, seen = trio.current_time() + 60 * options.minutes, Counter[str]()
    every = [note for some in notes.values() for note in some]
    async with trio.open_nursery() as nursery:
        for program, some in notes.items():
            nursery.start_soon(be_program, some, program, until)
        for number in range(AGENTS):
            kinds = options.agents.split(",")
            nursery.start_soon(be_agent, f"agent-{number}", server, every, until, kinds, seen)
    await trio.sleep(SETTLING)
    return {"notes": every, "answers": dict(sorted(seen.items()))}


def account(data: Path, notes: list[Note]) -> tuple[Counter[str], list[str]]:
    """Where every saved line is."""
    private = [path.read_text() for path in (data / ".lithos" / "displaced").glob("*.md")]
    private += [path.read_text() for path in (data / "knowledge").glob(".lithos-*")]
    displaced = set(LINE.findall("\n".join(private)))
    found, lost = Counter[str](), list[str]()
    for note in notes:
        there = set(LINE.findall(note.path.read_text())) if note.path.exists() else set()
        for line, saved_at in note.saved.items():
            places = {
                "in the file": line in there,
                "displaced": line in displaced,
                "left out by its program": line in note.left_out,
                "deleted by an agent": any(saved_at < deleted for deleted in note.deletions),
            }
            place = next((name for name, is_there in places.items() if is_there), None)
            found[place or "lost"] += 1
            if place is None:
                lost.append(f"{note.title}: {line}")
    return found, lost


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.editors", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--agents", default="patch,patch,write,delete", help="what agents do, by chance")
    options = parser.parse_args()
    with data_directory(50) as data:
        with serving(data) as server:
            done = trio.run(partial(run, server, data, options))
        found, lost = account(data, done["notes"])
        print_report(
            "editors",
            minutes=options.minutes,
            saved=sum(found.values()),
            accounted=dict(sorted(found.items())),
            answers=done["answers"],
            lost=len(lost),
            examples=lost[:5],
        )
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
