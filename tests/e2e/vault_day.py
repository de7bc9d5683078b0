"""A day in a person's vault: what git says of it in the evening is what was asked for, and nothing else.

The vault is a git repository, served where it lies. Agents write, edit, tag, move, delete, restore, search,
retrieve and share tasks, the person saves files of her own; then all rest while enrichment goes on. A ledger
takes every change from its answer, and `find_unasked` compares git and the files with it.

`python -m tests.e2e.vault_day VAULT --minutes 60 --rest 5` does that with a copy of VAULT and prints what
git says.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import trio
import yaml
from attrs import define, field

from tests.e2e.clients import WireClient
from tests.e2e.process import Lithos, run_lithos, running_lithos

AGENTS: Final = ("ann", "ben", "cleo", "bad")
#: Whose work is taken back at the end.
UNDONE: Final = "bad"
#: Learning as often as it can be had: a drain a second, the sweep at once.
SETTINGS: Final = {
    "LITHOS_LCMA__ENRICH_DRAIN_INTERVAL_MINUTES": "0.02",
    "LITHOS_LCMA__SWEEP_STARTUP_DELAY_MINUTES": "0.05",
}
#: What an agent's change writes beside what it is about.
STAMPS: Final = frozenset({"id"})
#: What a note that an agent made has on top.
MADE: Final = STAMPS | {"updated_at", "version", "title", "author", "created_at", "tags", "contributors"}
_FRONT: Final = re.compile(r"---\n(.*?^)---\n(.*)", re.DOTALL | re.MULTILINE)
_KEY: Final = re.compile(r"([\w-]+):")
_APPENDED: Final = re.compile(r"\n+(?=Noted \d+ by )")
#: Targets of links, in brackets or parentheses.
_TARGET: Final = re.compile(r"(?<=\[\[)[^\]|#]+|(?<=\]\()[^)]+")
Parts = tuple[dict[str, list[str]], str]


def parts_of(text: str) -> Parts:
    """The lines of each key on top, and the text below; blank lines around the text do not count."""
    found = _FRONT.fullmatch(text)
    front, body = (found[1], found[2]) if found else ("", text)
    keys: dict[str, list[str]] = {"": []}
    for line in front.splitlines():
        key = _KEY.match(line)
        keys.setdefault(key[1] if key else list(keys)[-1], []).append(line)
    return keys, _APPENDED.sub("\n\n", body).strip("\n")


def git(vault: Path, *arguments: str) -> str:
    """What git prints."""
    words = ["git", "-c", "user.name=P", "-c", "user.email=p", "-c", "core.quotePath=false", *arguments]
    return subprocess.run(words, cwd=vault, check=True, capture_output=True, text=True).stdout


@define(eq=False)
class Entry:
    """A file as it must be: its text, what an agent's change may have stamped, and tags that were asked for.

    `is_relinked`: a note that it links to was moved, so its links may lead elsewhere.
    """

    text: str
    id: str = ""
    version: int = 0
    is_stamped: bool = False
    is_made: bool = False
    is_relinked: bool = False
    tags: list[str] | None = None

    def append(self, line: str) -> None:
        """A block at the end; blanks at the end of the line before it stay."""
        self.text = self.text.rstrip("\n") + f"\n\n{line}\n"

    def fouls(self, path: str, found: str) -> list[str]:
        """What the file has that nobody asked for, or lacks."""
        asked = self.text
        if self.is_relinked:
            asked, found = _TARGET.sub("", asked), _TARGET.sub("", found)
        if not self.is_stamped:
            return [] if found == asked else [f"{path}: nobody changed it: {found!r} is not {asked!r}"]
        (wanted, body), (keys, text) = parts_of(asked), parts_of(found)
        allowed = (MADE if self.is_made else STAMPS) | ({"tags"} if self.tags is not None else set())
        differ = {key for key in wanted.keys() | keys.keys() if wanted.get(key, []) != keys.get(key, [])}
        told = [f"{path}: {key}: {keys.get(key)}" for key in sorted(differ - allowed)]
        top = yaml.safe_load("\n".join(line for lines in keys.values() for line in lines)) or {}
        # A restoring brings the very bytes back: a made note's earlier version, a person's note without id.
        is_known = top.get("id") == self.id or (not self.is_made and "id" not in top)
        if self.id and not (is_known and top.get("version", 0) <= self.version):
            told.append(f"{path}: {top.get('id')} {top.get('version')} is not {self.id} {self.version}")
        if self.tags is not None and top.get("tags") != self.tags:
            told.append(f"{path}: {top.get('tags')} is not {self.tags}")
        return told if text == body else [*told, f"{path}: {text!r} is not {body!r}"]


@define(eq=False)
class Ledger:
    """The vault as the answers say it must be."""

    vault: Path
    committed: dict[str, str] = field(factory=dict)
    files: dict[str, Entry] = field(factory=dict)
    #: Of the notes by id; a note that moves keeps its entry.
    notes: dict[str, Entry] = field(factory=dict)

    @classmethod
    def of(cls, vault: Path) -> Ledger:
        """Commit all there is."""
        git(vault, "init", "-q")
        git(vault, "add", "-A")
        git(vault, "commit", "-qm", "Morning")
        ledger = cls(vault)
        for path in git(vault, "ls-files", "-z").split("\0")[:-1]:
            if path.endswith(".md"):
                ledger.committed[path] = (vault / path).read_bytes().decode()
        ledger.files = {path: Entry(text) for path, text in ledger.committed.items()}
        return ledger

    def note(self, answer: dict[str, Any]) -> Entry:
        """The file that a change was made to, as its answer says."""
        entry = self.notes[answer["id"]] = self.files[answer["path"]]
        entry.id, entry.version, entry.is_stamped = answer["id"], answer["version"], True
        return entry

    def now(self, path: str) -> str:
        """What is in the file."""
        return (self.vault / path).read_bytes().decode()

    def status(self) -> set[str]:
        """What `git status` must say."""
        gone = {f" D {path}" for path in self.committed.keys() - self.files.keys()}
        new = {f"?? {path}" for path in self.files.keys() - self.committed.keys()}
        both = self.committed.keys() & self.files.keys()
        changed = {path for path in both if self.now(path) != self.committed[path]}
        return gone | new | {f" M {path}" for path in changed}

    def find_unasked(self) -> list[str]:
        """What is otherwise than the answers say; empty when all is well."""
        said = git(self.vault, "status", "--porcelain", "--ignored", "-uall", "-z").split("\0")[:-1]
        told = [f"git status: {line}" for line in sorted(set(said) ^ self.status())]
        for path, entry in sorted(self.files.items()):
            if (self.vault / path).exists():
                told += entry.fouls(path, self.now(path))
        return told


@define(eq=False)
class Worker:
    """An agent with notes of its own, so that its answers say all that becomes of them."""

    name: str
    ledger: Ledger
    client: WireClient
    random: Random
    #: Path by id of the notes it works on, and those it deleted: their id, path and last version.
    notes: dict[str, str] = field(factory=dict)
    deleted: list[tuple[str, str, Entry]] = field(factory=list)
    count: int = 0

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.client.call(f"lithos_{tool}", agent=self.name, **arguments)
        assert "code" not in answer, (tool, arguments, answer)
        return answer

    async def step(self) -> None:
        """One of the things that agents do."""
        self.count += 1
        steps: list[Callable[[], Awaitable[None]]] = [
            self.append, self.append, self.reword, self.tag, self.write, self.rename, self.remove,
            self.bring_back, self.look, self.learn,
        ]  # fmt: skip
        await self.random.choice(steps)()

    def _pick(self) -> tuple[str, str]:
        return self.random.choice(sorted(self.notes.items()))

    async def append(self) -> None:
        note, _ = self._pick()
        line = f"Noted {self.count} by {self.name}: Grace Hopper met Alan Turing at Bletchley Park."
        self.ledger.note(await self.call("note_edit", id=note, op="append", text=line)).append(line)

    async def reword(self) -> None:
        note, path = self._pick()
        body = parts_of(self.ledger.files[path].text)[1]
        prose = "\n".join(line for line in body.splitlines() if line[:1].isalpha() and "[" not in line)
        words = [word for word in re.findall(r"\b[a-z]{7,}\b", prose) if body.count(word) == 1]
        if words:
            word = self.random.choice(words)
            answer = await self.call("note_edit", id=note, op="find_replace", find=word, text=f"{word}ing")
            entry = self.ledger.note(answer)
            before, _, after = entry.text.rpartition(word)
            entry.text = f"{before}{word}ing{after}"

    async def tag(self) -> None:
        note, _ = self._pick()
        tags = ["kept", f"by-{self.name}-{self.count}"]
        self.ledger.note(await self.call("note_update", id=note, tags=tags)).tags = tags

    async def write(self) -> None:
        title, text = f"Made {self.count} by {self.name}", f"A text of {self.name}, number {self.count}."
        answer = await self.call("write", title=title, content=text, tags=["made"])
        self.ledger.files[answer["path"]] = Entry(text, is_made=True, tags=["made"])
        self.ledger.note(answer)
        self.notes[answer["id"]] = answer["path"]

    async def rename(self) -> None:
        """Under another name in its folder, with the links to it; where it will be undone without them."""
        note, path = self._pick()
        new = str(Path(path).with_name(f"Moved {self.count} by {self.name}.md"))
        answer = await self.call("note_move", id=note, path=new, update_links=self.name != UNDONE)
        assert answer["path"] == new
        self.ledger.files[new], self.notes[note] = self.ledger.files.pop(path), new
        for other in answer["rewritten"]:
            entry = self.ledger.notes.get(other)
            if entry is None:  # a note of the person's, which no answer has named yet
                entry = self.ledger.files[(await self.call("read", id=other))["path"]]
            entry.is_relinked = entry.is_stamped = True

    async def remove(self) -> None:
        if len(self.notes) > 3:
            note, path = self._pick()
            await self.call("delete", id=note)
            del self.notes[note]
            self.deleted.append((note, path, self.ledger.files.pop(path)))

    async def bring_back(self) -> None:
        if self.deleted:
            note, path, entry = self.deleted.pop()
            (row,) = (await self.call("history", id=note, limit=1))["versions"]
            answer = await self.call("restore", id=note, version=row["version"])
            self.ledger.files[path], self.notes[note] = entry, path
            self.ledger.note(answer)

    async def look(self) -> None:
        await self.call("search", query="who met whom, and where", limit=5)
        await self.call("context", query="what is known of Bletchley Park", budget=400)
        await self.call("cache_lookup", query="where did they meet")

    async def learn(self) -> None:
        """A task with a retrieval and what helped."""
        task = (await self.call("task_create", title=f"Look into {self.count}"))["task_id"]
        await self.call("task_claim", task_id=task, aspect="work")
        found = await self.call("retrieve", query="Grace Hopper", task_id=task, limit=5)
        await self.call("finding_post", task_id=task, summary="Found.")
        cited = [row["id"] for row in found["results"][:2]]
        await self.call("task_complete", task_id=task, receipt_id=found["receipt_id"], cited_nodes=cited)


@define(eq=False)
class Writer:
    """The person: saves her own files, in place and by renaming, makes, moves and deletes some."""

    ledger: Ledger
    random: Random
    paths: list[str]
    count: int = 0

    def step(self) -> None:
        self.count += 1
        path = self.random.choice(self.paths)
        file, entry = self.ledger.vault / path, self.ledger.files[path]
        kind = self.random.randrange(8)
        if kind < 6:
            entry.text += f"\nMy line {self.count}.\n"
            if kind < 3:
                file.write_text(entry.text)
            else:
                beside = file.with_name(f".{file.name}.tmp")
                beside.write_text(entry.text)
                beside.replace(file)
        elif kind == 6:
            new = str(Path(path).with_name(f"My note {self.count}.md"))
            file.rename(file.with_name(Path(new).name))
            self.ledger.files[new] = self.ledger.files.pop(path)
            self.paths[self.paths.index(path)] = new
        else:
            text = f"# A thought {self.count}\n\nAda Lovelace wrote to Charles Babbage.\n"
            new = f"Thought {self.count}.md"
            (self.ledger.vault / new).write_text(text)
            self.ledger.files[new] = Entry(text)
            self.paths.append(new)


async def learn_ids(server: Lithos, ledger: Ledger) -> dict[str, str]:
    """Path by id of the notes to work on: plain text with line feeds, no id of another program."""
    found = {}
    async with WireClient.open(server.address) as client:
        for path, entry in sorted(ledger.files.items()):
            answer = await client.call("lithos_read", path=path, max_length=1)
            if "code" not in answer:
                ledger.notes[answer["id"]] = entry
                if entry.text.strip() and not re.search("\r|\nid:|\ufeff", entry.text):
                    found[answer["id"]] = path
    return found


async def work(server: Lithos, ledger: Ledger, seconds: float, seed: int) -> int:
    """All are at work for so long, each with notes of its own; how many steps they did."""
    random = Random(seed)
    notes = sorted((await learn_ids(server, ledger)).items(), key=lambda each: each[1])
    random.shuffle(notes)
    # What is taken back stands in notes that no move of others reaches.
    notes.sort(key=lambda each: bool(_TARGET.search(ledger.files[each[1]].text)), reverse=True)
    share = min(12, len(notes) // (len(AGENTS) + 2))
    shares = [notes[share * number : share * (number + 1)] for number in range(len(AGENTS))]
    person = Writer(ledger, random, [path for _, path in shares.pop(0)])
    unlinked = notes[-share:]
    until = trio.current_time() + seconds
    pause = 0.02 if seconds < 120 else 1.0
    done = 0

    async def agent(name: str, own: list[tuple[str, str]]) -> None:
        nonlocal done
        async with WireClient.open(server.address) as client:
            worker = Worker(name, ledger, client, Random(f"{seed} {name}"), dict(own))
            while trio.current_time() < until:
                await worker.step()
                done += 1
                await trio.sleep(pause)
        if name == UNDONE:
            take_back(ledger, worker, own)

    async def write() -> None:
        nonlocal done
        while trio.current_time() < until:
            person.step()
            done += 1
            await trio.sleep(pause * 10)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write)
        for name, own in zip(AGENTS, [*shares, unlinked], strict=True):
            nursery.start_soon(agent, name, own)
    return done


def take_back(ledger: Ledger, worker: Worker, own: Sequence[tuple[str, str]]) -> None:
    """Have the ledger say what an undo leaves: what the agent made is gone, its notes are as they were."""
    for path in worker.notes.values():
        del ledger.files[path]
    for note, path in own:
        before = ledger.notes[note]
        text = ledger.committed[path]
        ledger.files[path] = Entry(text, is_stamped=True, is_relinked=before.is_relinked)


async def rest(server: Lithos, seconds: float) -> None:
    """Nobody does anything, until what is to be learned is learned, and at least for so long."""
    until = trio.current_time() + seconds
    with trio.fail_after(seconds + 120):
        while trio.current_time() < until or not is_learned(server):
            await trio.sleep(0.5)


def is_learned(server: Lithos) -> bool:
    """Whether enrichment did something and has nothing left to do."""
    text = server.ask("GET", "/metrics")[1]
    values = dict(
        re.findall(r"^lithos_lcma_enrich_(queue_depth|attempts_count)\S* (\S+)$", text, re.MULTILINE)
    )
    return float(values.get("queue_depth", 1)) == 0 and float(values.get("attempts_count", 0)) > 0


def undo(ledger: Ledger, data: Path) -> None:
    """Take back what one agent did."""
    given = ["--agent", UNDONE, "--since", "2020-01-01T00:00Z"]
    told = run_lithos("--vault", ledger.vault, "-d", data, "undo", *given)
    assert told.returncode == 0, told.stdout + told.stderr


def live_a_day(vault: Path, data: Path, seconds: float, resting: float, seed: int = 1) -> tuple[Ledger, int]:
    """The day, in a vault that becomes a repository; its ledger when everything rests, and the steps done."""
    ledger = Ledger.of(vault)
    with running_lithos(data, "--vault", str(vault), env=SETTINGS) as server:
        done = trio.run(work, server, ledger, seconds, seed)
        undo(ledger, data)
        trio.run(rest, server, resting)
        while_served = ledger.find_unasked()
    assert while_served == [], "\n".join(while_served)
    return ledger, done


def main() -> None:
    """Live a day with a copy of a vault, and say what git says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vault", type=Path)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--rest", type=float, default=0.5)
    typed = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        vault = Path(folder) / "vault"
        shutil.copytree(typed.vault, vault, ignore=shutil.ignore_patterns(".git"))
        _, done = live_a_day(vault, Path(folder) / "data", typed.minutes * 60, typed.rest * 60)
        diff = git(vault, "diff", "--stat")
        status = git(vault, "status", "--short", "--ignored", "-uall")
        sys.stdout.write(f"{status}\n{diff}\n{done} steps; what git says is what was asked for\n")


if __name__ == "__main__":
    main()
