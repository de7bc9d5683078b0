"""Two servers on two folders that a program like Syncthing keeps alike, with agents and editors at work.

    python -m bench.two_machines [--minutes N] [--agents N] [--notes N] [--seed N]

On each machine half of the agents add lines to notes over MCP and make some, and an editor adds lines to the
files: on one machine it replaces them, on the other it writes into them. Every so often both folders are
compared; a file that changed on one side only is copied, one that changed on both keeps the later version,
and the other becomes `NAME.sync-conflict-DATE-TIME-DEVICE.md`, as Syncthing does it. Nothing is merged until
the writers stop. Then `lithos conflicts merge --all --keep both` runs on the first machine until both folders
are equal and no copy is left.

Every line that was acknowledged, or saved by an editor, must be in the notes of both sides at the end. One
that an editor overwrote, since it had read the file just before an agent wrote it, must be in the history.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import trio
from attrs import define, field, frozen

from bench.client import RawClient, ToolFailed
from bench.server import Serving, serving
from lithos.stores.history.reading import read_contents
from lithos.stores.notes.system_calls import KernelCalls
from lithos.stores.sqlite import snapshot

DEVICES: Final = ("AAAAAAA", "BBBBBBB")
#: Seconds between two comparisons, and for which a replaced file is looked at for late writes.
PAUSE, GRACE = 1.0, 1.5
ROUNDS: Final = 30
_TEMPORARY: Final = ".syncthing."
_WORDS: Final = ("river", "stone", "lamp", "door", "field", "wind", "paper", "glass", "clock", "engine")


def note_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


@define
class Syncing:
    """Keeps two folders alike; knows what both had when they were last alike."""

    folders: tuple[Path, Path]
    _known: dict[str, str] = field(factory=dict)
    _replaced: list[tuple[float, Path, str, Path]] = field(factory=list)
    counts: Counter[str] = field(factory=Counter)
    _calls: KernelCalls = field(factory=KernelCalls)

    def compare(self) -> int:
        """One round; how many files were copied, removed or renamed."""
        self._look_at_replaced()
        done = 0
        seen = [self._scan(folder) for folder in self.folders]
        for name in sorted({*seen[0], *seen[1], *self._known}):
            done += self._settle(name, seen[0].get(name), seen[1].get(name))
        return done

    def _scan(self, folder: Path) -> dict[str, str]:
        found: dict[str, str] = {}
        for path in folder.rglob("*.md"):
            name = str(path.relative_to(folder))
            if not path.name.startswith("."):
                value = digest(path)
                if value is not None:
                    found[name] = value
        return found

    def _settle(self, name: str, one: str | None, other: str | None) -> int:
        known = self._known.get(name)
        if one == other:
            self._remember(name, one)
            return 0
        if other == known:
            return self._copy(name, 0, one, other)
        if one == known:
            return self._copy(name, 1, other, one)
        if one is None or other is None:  # changed here, gone there: what was changed comes back
            return self._copy(name, 0 if one is not None else 1, one or other, None)
        return self._conflict(name, one, other)

    def _remember(self, name: str, value: str | None) -> None:
        if value is None:
            self._known.pop(name, None)
        else:
            self._known[name] = value

    def _conflict(self, name: str, one: str, other: str) -> int:
        """The later version wins; the other gets the name of a conflict copy, on its own machine."""
        paths = [folder / name for folder in self.folders]
        try:
            times = [path.stat().st_mtime_ns for path in paths]
        except FileNotFoundError:
            return 0
        winner = 0 if times[0] >= times[1] else 1
        loser = 1 - winner
        self.counts["conflicts"] += 1
        return self._copy(name, winner, (one, other)[winner], (one, other)[loser], is_conflict=True)

    def _copy(
        self, name: str, source: int, wanted: str | None, there: str | None, *, is_conflict: bool = False
    ) -> int:
        """Have the other side be as this one, if both are still what they were."""
        begin, end = self.folders[source] / name, self.folders[1 - source] / name
        if wanted is None:
            if digest(end) == there:
                end.unlink(missing_ok=True)
                self._remember(name, None)
                self.counts["removed"] += 1
                return 1
            return 0
        try:
            data = begin.read_bytes()
            mtime = begin.stat().st_mtime_ns
        except FileNotFoundError:
            return 0
        if hashlib.sha256(data).hexdigest() != wanted:
            return 0  # it is being written: next time
        end.parent.mkdir(parents=True, exist_ok=True)
        temporary = end.with_name(f"{_TEMPORARY}{end.name}.tmp")
        temporary.write_bytes(data)
        os.utime(temporary, ns=(mtime, mtime))
        if there is None:
            try:
                os.link(temporary, end)
            except FileExistsError:
                temporary.unlink()
                return 0
            temporary.unlink()
        else:
            try:
                self._calls.exchange(str(temporary), str(end))
            except FileNotFoundError:
                temporary.unlink()
                return 0
            if digest(temporary) != there or is_conflict:
                self._keep_aside(name, end, temporary)
            else:
                kept = temporary.with_name(f"{_TEMPORARY}{time.time_ns()}.old")
                temporary.rename(kept)
                self._replaced.append((time.monotonic(), kept, there, end))
        self._remember(name, wanted)
        self.counts["copied"] += 1
        return 1

    def _keep_aside(self, name: str, end: Path, loser: Path) -> None:
        """The version that lost, under the name of a conflict copy; it is copied in the next round."""
        side = 0 if end.is_relative_to(self.folders[0]) else 1
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(loser.stat().st_mtime))
        stem = end.name.removesuffix(".md")
        for number in range(60):
            copy = end.with_name(f"{stem}.sync-conflict-{stamp[:-2]}{number:02}-{DEVICES[side]}.md")
            with suppress(FileExistsError):
                os.link(loser, copy)
                loser.unlink()
                self.counts["conflict copies"] += 1
                return
        raise RuntimeError(f"no name is left for the version of {name} that lost")

    def _look_at_replaced(self) -> None:
        """What somebody wrote into a file that was replaced becomes a conflict copy, too."""
        now, left = time.monotonic(), []
        for at, path, value, end in self._replaced:
            if now - at < GRACE:
                left.append((at, path, value, end))
            elif digest(path) != value:
                self._keep_aside(end.name, end, path)
                self.counts["written late"] += 1
            else:
                path.unlink()
        self._replaced = left

    @property
    def is_settled(self) -> bool:
        return not self._replaced


@define
class Machine:
    """One of the two: its data, its server, and the lines that were acknowledged by name of note."""

    number: int
    data: Path
    server: Serving
    lines: dict[str, str] = field(factory=dict)
    counts: Counter[str] = field(factory=Counter)

    @property
    def notes(self) -> Path:
        return self.data / "knowledge"


async def be_agent(machine: Machine, number: int, names: Sequence[str], rng: random.Random) -> None:
    """Add lines to notes, at the end or below a heading, and make some notes; until cancelled."""
    who, count = f"agent-{machine.number}-{number}", 0
    async with RawClient(machine.server.host, machine.server.port) as client:
        while True:
            count += 1
            line = f"{who} line {count} {rng.choice(_WORDS)} {rng.choice(_WORDS)}"
            if rng.random() < 0.08:
                title = f"{who} note {count}"
                given = {"agent": who, "title": title, "content": line}
                tool, name = "lithos_write", f"{title.replace(' ', '-')}.md"
            else:
                name = rng.choice(names)
                given = {"agent": who, "id": note_id(name), "op": "append", "text": line}
                if rng.random() < 0.5:
                    given |= {"section": f"Part {rng.randrange(5)}"}
                tool = "lithos_note_edit"
            try:
                await client.call(tool, given)
            except ToolFailed as refusal:
                machine.counts[_code(refusal)] += 1
            else:
                machine.lines[line] = name
                machine.counts["acknowledged"] += 1
            await trio.sleep(rng.uniform(0.2, 1.2))


def _code(refusal: ToolFailed) -> str:
    text = str(refusal)
    start = text.find('"code":"')
    return text[start + 8 : text.find('"', start + 8)] if start >= 0 else text[:80]


async def be_editor(machine: Machine, names: Sequence[str], rng: random.Random) -> None:
    """Insert a line somewhere into a file: it is replaced on one machine, written into on the other."""
    who, count = f"editor-{machine.number}", 0
    while True:
        await trio.sleep(rng.uniform(0.5, 2.0))
        name = rng.choice(names)
        path = machine.notes / name
        count += 1
        line = f"{who} line {count} {rng.choice(_WORDS)}"
        try:
            before = path.stat()
            text = path.read_text(encoding="utf-8")
            head, mark, body = text.partition("\n---\n")
            lines = body.split("\n")
            lines.insert(rng.randrange(2, len(lines)) if len(lines) > 2 else len(lines), line)
            data = (head + mark + "\n".join(lines)).encode()
            if not mark or (path.stat().st_mtime_ns, path.stat().st_ino) != (
                before.st_mtime_ns,
                before.st_ino,
            ):
                machine.counts["editor read anew"] += 1  # as an editor that asks before it overwrites
                continue
            if machine.number == 0:
                aside = path.with_name(f".{name}.edit")
                aside.write_bytes(data)
                aside.rename(path)
            else:
                with path.open("r+b") as file:
                    file.write(data)
                    file.truncate()
        except FileNotFoundError:
            continue
        machine.lines[line] = name
        machine.counts["saved by the editor"] += 1


async def keep_syncing(syncing: Syncing) -> None:
    while True:
        syncing.compare()
        await trio.sleep(PAUSE)


async def settle(syncing: Syncing) -> None:
    """Compare until nothing happens, and the servers have taken up what they were given."""
    quiet = 0
    while quiet < 3:
        quiet = quiet + 1 if syncing.compare() == 0 and syncing.is_settled else 0
        await trio.sleep(PAUSE)


def merge_all(machine: Machine) -> dict[str, int]:
    """Merge what is there, as a person at a terminal; how many of what."""
    command = [
        str(Path(sys.executable).parent / "lithos"),
        "-d",
        str(machine.data),
        "--json",
        "conflicts",
        "merge",
    ]
    done = subprocess.run([*command, "--all", "--keep", "both"], capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(done.stderr)
    rows = json.loads(done.stdout)["copies"]
    return {
        "merged": sum(row["status"] == "merged" for row in rows),
        "left": sum(row["status"] == "error" for row in rows),
    }


def conflict_copies(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.sync-conflict-*.md"))


@frozen
class Outcome:
    """What became of the lines."""

    in_notes: int
    in_history: int
    lost: tuple[str, ...]
    twice: int


def judge(machines: Sequence[Machine]) -> Outcome:
    """Where each line is at the end."""
    texts = [
        "\n".join(p.read_text() for p in m.notes.rglob("*.md") if not p.name.startswith("."))
        for m in machines
    ]
    wanted = [line for machine in machines for line in machine.lines]
    missing = [line for line in wanted if any(line not in text for text in texts)]
    versions = "\n".join(_versions(machine) for machine in machines) if missing else ""
    lost = tuple(line for line in missing if line not in versions)
    twice = sum(texts[0].count(f"{line}\n") > 1 for line in wanted)
    return Outcome(len(wanted) - len(missing), len(missing) - len(lost), lost, twice)


def _versions(machine: Machine) -> str:
    """All that the history of a machine has kept."""
    with snapshot(machine.data / ".lithos" / "history.db", is_live=True) as connection:
        assert connection is not None
        ids = [str(row[0]) for row in connection.execute("SELECT id FROM notes")]
        return "\n".join(
            data.decode("utf-8", "replace")
            for note in ids
            for data in read_contents(connection, note, 100_000)
        )


async def run(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="lithos-two-") as work, ExitStack() as stack:
        machines: list[Machine] = []
        names = [f"note-{number}.md" for number in range(arguments.notes)]
        for number in range(2):
            data = Path(work) / f"machine-{number}"
            (data / "knowledge").mkdir(parents=True)
            if number == 0:
                for name in names:
                    parts = "\n\n".join(f"## Part {part}\n\nfirst line of part {part}" for part in range(5))
                    head = f"---\nid: {note_id(name)}\ntitle: {name.removesuffix('.md')}\n---\n"
                    (data / "knowledge" / name).write_text(f"{head}\n{parts}\n")
            machines.append(Machine(number, data, stack.enter_context(serving(data))))
        syncing = Syncing((machines[0].notes, machines[1].notes))
        await settle(syncing)
        await trio.sleep(3)
        rng = random.Random(arguments.seed)
        with trio.move_on_after(arguments.minutes * 60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(keep_syncing, syncing)
                for machine in machines:
                    for number in range(arguments.agents // 2):
                        nursery.start_soon(be_agent, machine, number, names, random.Random(rng.random()))
                    nursery.start_soon(be_editor, machine, names, random.Random(rng.random()))
        for machine in machines:
            print(f"machine {machine.number}: {dict(machine.counts)}", flush=True)
        await settle(syncing)
        shown = [conflict_copies(machine.notes) for machine in machines]
        print(
            f"syncing: {dict(syncing.counts)}; copies at the end of the work: {[len(each) for each in shown]}"
        )
        for number in range(ROUNDS):
            done = merge_all(machines[0])
            await settle(syncing)
            left = [conflict_copies(machine.notes) for machine in machines]
            print(f"round {number + 1}: {done}, copies left {[len(each) for each in left]}", flush=True)
            if not any(left):
                break
        await trio.sleep(3)
        await settle(syncing)
        first, second = ({p.name: digest(p) for p in machine.notes.rglob("*.md")} for machine in machines)
        outcome = judge(machines)
        differ = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
        print(
            f"lines: {outcome.in_notes} in the notes of both, {outcome.in_history} in the history alone, "
            f"{len(outcome.lost)} lost, {outcome.twice} twice; {len(first)} files, {len(differ)} differ"
        )
        for line in outcome.lost[:20]:
            print(f"lost: {line}")
        return int(bool(outcome.lost or differ or any(left)))


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--agents", type=int, default=4)
    parser.add_argument("--notes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=7)
    return trio.run(run, parser.parse_args(given))


if __name__ == "__main__":
    raise SystemExit(main())
