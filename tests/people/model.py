"""Model of people and an agent who change the same notes, and the exploration of all interleavings.

The agent is the product's own code (`NoteFiles`) on a fake file system. Before each of its system calls,
every person and the watcher may take any number of steps, and the process may die. A ledger follows every
text that a person saved. At the end, each text must be in a file or in a displaced file. Otherwise a person
must have overwritten or deleted it, or an agent that had read it.

Pruning: the product's next step depends only on the files, the positions of all people, and the answers that
the product has received. Two schedules with the same state therefore have the same futures, and only one of
them is continued. The reported number of schedules counts all paths through the graph of these states.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs

from lithos.notes.files.files import NoteFiles
from lithos.notes.files.protection import Protection
from lithos.notes.files.read_lease import recover_folder, settle
from lithos.notes.files.replacing import Replacing
from lithos.notes.files.values import FileBusy, FileChanged, Kept, Move, PrivateFolder, Put, Remove, digest_of
from tests.people.fake_files import NEEDED, FakeCalls, Inode

#: Maximum number of rounds in which the writer decides again.
ROUNDS = 2

Step = tuple[str, ...]


def tokens(data: bytes) -> set[bytes]:
    return set(re.findall(rb"<\w+>", data))


class Dead(BaseException):
    """Raised when the process was killed."""


class Pruned(BaseException):
    """Raised when this state has already been explored."""


@attrs.define(eq=False)
class Person:
    """A party that takes steps: an editor, a sync client or the watcher."""

    steps: Sequence[Step]
    position: int = 0
    inode: Inode | None = None
    waiting: Inode | None = None
    seen: bytes | None = None

    @property
    def is_able(self) -> bool:
        """Return False if all steps are done, or while a lease blocks an open() call."""
        return self.position < len(self.steps) and not (self.waiting and self.waiting.leases)

    def key(self) -> tuple[Any, ...]:
        inode = self.inode.number if self.inode else 0
        return self.position, inode, self.waiting.number if self.waiting else 0, self.seen


# -- steps of people --------------------------------------------------------------------------------


def in_place(path: str, *pieces: str) -> list[Step]:
    """Return the steps that truncate a file and write it, in one piece or in several pieces."""
    return [("open", path, "truncate"), *(("write", piece) for piece in pieces), ("close",)]


def append(path: str, piece: str) -> list[Step]:
    return [("open", path, ""), ("write", piece), ("close",)]


def atomic(path: str, text: str) -> list[Step]:
    return [("new", f"{path}~{text}", text), ("rename", f"{path}~{text}", path)]


def move(path: str, other: str) -> list[Step]:
    return [("rename", path, other)]


def delete(path: str) -> list[Step]:
    return [("unlink", path)]


def take_up(path: str) -> list[Step]:
    """Return the watcher's steps: the calls of `NoteFiles.read`, and then the second check of the writer."""
    return [("peek", path), ("read",), ("take", path)]


class World:
    """One exploration run with its files, people, agent and ledger."""

    def __init__(
        self, root: Path, notes: dict[str, str], people: Sequence[Sequence[Step]], lacking: frozenset[str]
    ) -> None:
        self.root = root
        self.calls = FakeCalls(lacking)
        self.files = NoteFiles(root, self.calls)
        #: Folder for displaced files, on a file system where they cannot stay next to their notes.
        self.place = PrivateFolder(f"{root}-place", str(root)) if "beside" in lacking else None
        self.files._roots.main.replacing = Replacing(
            self.calls,
            Protection(**{name: call not in lacking for name, call in NEEDED.items()}),
            self.files._kept.append,
            self.place,
        )
        self.saved: set[bytes] = set()
        self.excused: set[bytes] = set()
        self.displaced: list[bytes] = []
        self.removed_by_people: set[int] = set()
        self.known: dict[str, str] = {}
        self.outcomes: list[str] = []
        for name, text in notes.items():
            self.calls.put(self.path(name), text.encode())
            self.saved |= tokens(text.encode())
            self.known[name] = digest_of(text.encode())
        self.people = [Person(steps) for steps in people]

    def path(self, name: str) -> str:
        return str(self.root / name)

    # -- people -------------------------------------------------------------------------------------

    def act(self, person: Person) -> None:
        """Perform the next step of a simulated person."""
        kind, *more = person.steps[person.position]
        if getattr(self, f"_{kind}")(person, *more) is not False:
            person.position += 1

    def _open(self, person: Person, name: str, how: str) -> bool:
        inode, person.waiting = person.waiting, None
        if inode is not None:
            inode.writers -= 1
        else:
            path = self.path(name)
            if path not in self.calls.names:
                self.calls.put(path, b"")
            inode = self.calls.names[path]
            if inode.leases:
                inode.leases = dict.fromkeys(inode.leases, False)
                person.waiting = inode
                inode.writers += 1  # the kernel also counts writers that wait
                return False
        if how == "truncate":
            self._excuse(inode)
            inode.data = b""
        inode.writers += 1
        person.inode = inode
        return True

    def _write(self, person: Person, text: str) -> None:
        assert person.inode is not None
        person.inode.data += text.encode()
        self.saved |= tokens(text.encode())
        if person.inode.number in self.removed_by_people and not person.inode.names:
            self.excused |= tokens(text.encode())  # another person deleted the file in the meantime

    def _close(self, person: Person) -> None:
        assert person.inode is not None
        person.inode.writers -= 1
        person.inode = None

    def _new(self, person: Person, name: str, text: str) -> None:
        self.calls.put(self.path(name), text.encode())
        self.saved |= tokens(text.encode())

    def _rename(self, person: Person, source: str, target: str) -> None:
        path, other = self.path(source), self.path(target)
        if path not in self.calls.names:
            return  # the file is gone, and the person sees an error message
        inode, old = self.calls.names.pop(path), self.calls.names.get(other)
        if old is not None:
            self._lose_name(old)
        self.calls.names[other] = inode

    def _unlink(self, person: Person, name: str) -> None:
        inode = self.calls.names.pop(self.path(name), None)
        if inode is not None:
            self._lose_name(inode)

    def _lose_name(self, inode: Inode) -> None:
        inode.names -= 1  # the file may keep a private name for a moment
        self.removed_by_people.add(inode.number)
        self._excuse(inode)

    def _excuse(self, inode: Inode) -> None:
        self.excused |= tokens(inode.data)

    def _peek(self, person: Person, name: str) -> None:
        person.inode = self.calls.names.get(self.path(name))

    def _read(self, person: Person) -> None:
        person.seen = None if person.inode is None else person.inode.data

    def _take(self, person: Person, name: str) -> None:
        """The watcher's state is size and modification time. In the model, all times are equal."""
        inode = self.calls.names.get(self.path(name))
        if person.seen is not None and inode is not None and len(inode.data) == len(person.seen):
            self.known[name] = digest_of(person.seen)
        person.inode = person.seen = None

    # -- the agent ----------------------------------------------------------------------------------

    def ask(self, request: Step) -> None:
        """Handle a request, and the files that it displaced, as the writer does."""
        kind, name, *text = request
        for _ in range(ROUNDS):
            outcome = self._try(kind, name, "".join(text).encode())
            if outcome != "changed":
                break
        self.outcomes.append(outcome)

    def _try(self, kind: str, name: str, text: bytes) -> str:
        change: Put | Remove | Move
        if kind == "create":
            change = Put(name, text, None)
        else:
            try:
                source = self.files.read_quiet(name, self.known.get(name))
            except FileBusy:
                return "refused"
            except FileNotFoundError:
                return "missing"
            is_told = source.digest == self.known.get(name)
            if kind == "patch":
                change = Put(name, source.data + text, source.digest)
            elif kind == "write":
                change = Put(name, text, source.digest, saves_old=not is_told)
            elif kind == "move":
                change = Move(name, text.decode(), source.digest)
            else:
                change = Remove(name, source.digest, saves_old=not is_told)
            if is_told and kind not in ("patch", "move"):
                self.excused |= tokens(source.data)
        (result,) = self.files.apply([change])
        if isinstance(result, FileChanged):
            return "changed"
        if isinstance(result, Exception):
            return "refused"
        if isinstance(change, Put):
            self.known[name] = digest_of(change.data)
        if isinstance(change, Move):
            self.known[change.new] = change.expected
        return "done"

    def settle_at_once(self) -> None:
        """Settle displaced files without a grace period. This is allowed if leases reveal writers."""
        for kept in self.files.take_kept():
            try:
                settle(self.calls, kept, self._save, leases=True)
            except FileBusy:
                self.files._kept.append(kept)

    def _save(self, kept: Kept, data: bytes) -> None:
        self.displaced.append(data)

    # -- the end ------------------------------------------------------------------------------------

    def end(self, *, is_dead: bool) -> None:
        """Let all parties finish and recover the files of a killed process. Check that no text is missing."""
        self.calls.reach = lambda call: None
        if is_dead:
            for descriptor in list(self.calls.opened):
                self.calls.close(descriptor)
        while able := [person for person in self.people if person.is_able]:
            self.act(able[0])
        assert all(person.position == len(person.steps) for person in self.people), "someone waits for ever"
        left = self.files.take_kept()
        if is_dead:
            left = self._recover()
        for kept in left:
            settle(self.calls, kept, self._save, leases="lease" not in self.calls.lacking)
        self._check()

    def _recover(self) -> list[Kept]:
        found: list[Kept] = []
        for folder in filter(None, (str(self.root), self.place and self.place.folder)):
            names = [os.path.basename(path) for path in self.calls.names if os.path.dirname(path) == folder]
            place = None if folder == str(self.root) else self.place
            found += recover_folder(self.calls, folder, names, place)[0]
        return found

    def _check(self) -> None:
        assert not self.calls.opened, "a descriptor was left open"
        private = [path for path in self.calls.names if Path(path).name.startswith(".lithos-")]
        assert not private, f"left behind: {private}"
        there = b"".join([inode.data for inode in self.calls.names.values()] + self.displaced)
        lost = self.saved - self.excused - tokens(there)
        assert not lost, f"lost: {sorted(lost)}, outcomes {self.outcomes}"

    def key(self) -> tuple[Any, ...]:
        """Return the whole state that determines the future."""
        calls = self.calls
        inodes = {inode.number: inode for inode in calls.names.values()}
        inodes |= {inode.number: inode for inode, _ in calls.opened.values()}
        for person in self.people:
            inodes |= {each.number: each for each in (person.inode, person.waiting) if each is not None}
        return (
            calls.calls,
            tuple(calls.answers),
            tuple(sorted((path, inode.number) for path, inode in calls.names.items())),
            tuple(
                sorted((n, i.data, i.writers, i.names, tuple(i.leases.items())) for n, i in inodes.items())
            ),
            tuple((descriptor, inode.number) for descriptor, (inode, _) in calls.opened.items()),
            tuple(person.key() for person in self.people),
            frozenset(self.excused),
            frozenset(self.saved),
            tuple(self.displaced),
            frozenset(self.removed_by_people),
            tuple(sorted(self.known.items())),
        )


@attrs.define
class Explored:
    """Numbers of runs and of distinct states, and the number of schedules that these states represent."""

    runs: int = 0
    states: int = 0
    schedules: int = 0


@attrs.define(eq=False)
class _Graph:
    """Graph of states. Each choice in a state leads to another state, or to None at the end."""

    choices: dict[int, list[int | None]] = attrs.field(factory=dict)

    def count(self) -> int:
        counted: dict[int, int] = {}
        stack = [0]
        while stack:
            node = stack[-1]
            pending = [n for n in self.choices[node] if n is not None and n not in counted]
            if pending:
                stack += pending
                continue
            stack.pop()
            counted[node] = sum(1 if n is None else counted[n] for n in self.choices[node])
        return counted[0]


def explore(make: Callable[[], World], requests: Sequence[Step], *, dies: bool = False) -> Explored:
    """Run every interleaving of the requests with the people's steps to its end."""
    found, graph = Explored(), _Graph()
    numbers: dict[tuple[Any, ...], int] = {}
    prefixes: list[list[int]] = [[]]
    while prefixes:
        prefix = prefixes.pop()
        found.runs += 1
        _run(make(), requests, prefix, prefixes, numbers, graph, dies=dies)
    found.states = len(numbers)
    found.schedules = graph.count()
    return found


def _run(
    world: World,
    requests: Sequence[Step],
    prefix: list[int],
    prefixes: list[list[int]],
    numbers: dict[tuple[Any, ...], int],
    graph: _Graph,
    *,
    dies: bool,
) -> None:
    made: list[int] = []
    last: tuple[int, int] | None = None

    def arrive(node: int | None) -> None:
        if last is not None:
            graph.choices[last[0]][last[1]] = node

    def choose(options: int) -> int:
        nonlocal last
        key = (*world.key(), options)
        node = numbers.get(key)
        is_new = node is None
        if node is None:
            node = numbers[key] = len(numbers)
            graph.choices[node] = [None] * options
        arrive(node)
        if len(made) >= len(prefix):
            if not is_new:
                raise Pruned
            prefixes.extend([*made, option] for option in range(1, options))
            choice = 0
        else:
            choice = prefix[len(made)]
        made.append(choice)
        last = (node, choice)
        return choice

    is_over = False

    def reach(call: str) -> None:
        nonlocal is_over
        if is_over:
            raise Dead
        while True:
            able = [person for person in world.people if person.is_able]
            choice = choose(1 + len(able) + dies) if able or dies else 0
            if choice == 0:
                return
            if choice > len(able):
                is_over = True
                raise Dead
            world.act(able[choice - 1])

    world.calls.reach = reach
    try:
        for request in requests:
            world.ask(request)
            if "lease" not in world.calls.lacking:
                world.settle_at_once()
    except Dead:
        pass
    except Pruned:
        return
    world.end(is_dead=is_over)
    arrive(None)
