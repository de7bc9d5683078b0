"""People who edit the same notes with editors and other programs. They make one system call at a time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import trio
from attrs import define, field

if TYPE_CHECKING:
    from tests.simulation.world import World

Step = Callable[[], bool]
KINDS = ("in place", "atomic", "new", "rename", "delete", "sync", "bulk", "folder")


@define(eq=False)
class Person:
    """A person who saves files. A step that returns False is repeated later, for example during a lease."""

    world: World
    random: Random
    habits: dict[str, float]
    think: float
    steps: deque[Step] = field(factory=deque)
    spans: list[list[float]] = field(factory=list)
    descriptor: int | None = None
    #: Counter for the names of new files that the person creates.
    made: int = 0

    @property
    def folder(self) -> Path:
        """Return the current notes folder."""
        return Path(self.world.disk.root) / "knowledge"

    async def work(self) -> None:
        """Save one file after another until the world winds down."""
        while True:
            if not self.steps:
                if self.world.winds_down():
                    return
                await trio.sleep(self.random.expovariate(1 / self.think))
                if self.world.winds_down():
                    return
                if any(person.steps for person in self.world.people):
                    continue  # people do not race with one another here
                self._begin()
                continue
            await trio.sleep(self.random.choice((0.0, 0.0005, 0.01, 0.2, 1.0)) * self.random.random())
            self.step()

    def step(self) -> None:
        """Make one system call."""
        if not self.steps:
            return
        with self.world.disk.outside():
            if self.steps[0]():
                self.steps.popleft() if self.steps else None
        if not self.steps:
            self._end()

    def rush(self) -> None:
        """Save a complete note between two system calls of the server."""
        notes = self._notes()
        if notes and not self.world.winds_down():
            self.world.trace("person", "rush")
            with self.world.disk.outside():
                self._atomic(notes)
            for _ in range(len(self.steps)):
                self.step()

    def _end(self) -> None:
        for span in self.spans:
            span[1] = self.world.clock.now
        self.spans.clear()
        self.world.trace("person", "done")

    def move_over(self, old: str, new: str) -> None:
        """Reopen the files that the person has open in the new folder after a crash."""
        if self.descriptor is None:
            return
        was = os.readlink(f"/proc/self/fd/{self.descriptor}")
        place = os.lseek(self.descriptor, 0, os.SEEK_CUR)
        os.close(self.descriptor)
        self.descriptor = None
        if not was.startswith(old) or not os.path.exists(new + was.removeprefix(old)):
            self.give_up()
            return
        self.descriptor = os.open(new + was.removeprefix(old), os.O_WRONLY)
        os.lseek(self.descriptor, place, os.SEEK_SET)

    def give_up(self) -> None:
        """Stop all work, because the machine with the editor is gone."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
        self.steps.clear()
        self._end()

    # -- actions of people -------------------------------------------------------------------------

    def _begin(self) -> None:
        notes = self._notes()
        kind = self.random.choices(list(self.habits), list(self.habits.values()))[0]
        if not notes and kind != "new":
            kind = "new"
        self.world.trace("person", kind)
        getattr(self, "_" + kind.replace(" ", "_"))(notes)

    def _notes(self) -> list[Path]:
        return sorted(
            path
            for path in self.folder.rglob("*.md")
            if not any(part.startswith(".") for part in path.relative_to(self.folder).parts)
        )

    def _mark(self, path: Path) -> str:
        relative = path.relative_to(self.folder).as_posix()
        self.spans.append(self.world.ledger.touch(relative, self.world.clock.now))
        return relative

    def _read(self, path: Path) -> bytes | None:
        try:
            return path.read_bytes()
        except OSError:
            return None

    def _edited(self, text: bytes) -> bytes:
        """Return a new text that contains its own token."""
        line = f"A person says {self.world.token('p')}.\n".encode()
        return text + (b"" if text.endswith(b"\n") or not text else b"\n") + line

    def _in_place(self, notes: list[Path]) -> None:
        path = self.random.choice(notes)
        name, old = self._mark(path), self._read(path)
        if old is None:
            return
        text = self._edited(old)
        cut = self.random.randrange(len(text) + 1)
        ledger = self.world.ledger

        def open_it() -> bool:
            before = self._read(self.folder / name)
            if before is None:
                self.steps.clear()
                return False
            try:
                self.descriptor = os.open(self.folder / name, os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK)
            except BlockingIOError:
                return False
            ledger.excuse(before)
            return True

        def write(part: bytes, *, is_last: bool) -> bool:
            assert self.descriptor is not None
            os.write(self.descriptor, part)
            if is_last:
                if os.fstat(self.descriptor).st_nlink:
                    ledger.save(name, text)
                else:
                    self.world.unlinked_save(name, text)
            return True

        def close() -> bool:
            assert self.descriptor is not None
            os.close(self.descriptor)
            self.descriptor = None
            return True

        self.steps.extend(
            (
                open_it,
                lambda: write(text[:cut], is_last=False),
                lambda: write(text[cut:], is_last=True),
                close,
            )
        )

    def _put(self, name: str, text: bytes, *, synced: bool, mtime_ns: int | None = None) -> None:
        """Prepare the steps that write a new file next to the old file and rename it."""
        number = self.world.take_number()
        beside = str(Path(name).with_name(f".{Path(name).name}.{number}.part"))
        ledger = self.world.ledger

        def make() -> bool:
            (self.folder / beside).parent.mkdir(parents=True, exist_ok=True)
            self.descriptor = os.open(self.folder / beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            return True

        def write() -> bool:
            assert self.descriptor is not None
            os.write(self.descriptor, text)
            if synced:
                os.fsync(self.descriptor)
            os.close(self.descriptor)
            self.descriptor = None
            if mtime_ns is not None:
                self.world.disk.set_back(str(self.folder / beside), mtime_ns)
            return True

        def rename() -> bool:
            old = self._read(self.folder / name)
            if not (self.folder / beside).exists():
                self.steps.clear()
                return False
            os.rename(self.folder / beside, self.folder / name)
            if old is not None:
                ledger.excuse(old)
            ledger.excused -= self.world.tokens_of(text)
            ledger.save(name, text)
            return True

        self.steps.extend((make, write, rename))

    def _atomic(self, notes: list[Path], *, mtime_ns: int | None = None) -> None:
        path = self.random.choice(notes)
        name, old = self._mark(path), self._read(path)
        if old is not None:
            self._put(name, self._edited(old), synced=self.random.random() < 0.5, mtime_ns=mtime_ns)

    def _sync(self, notes: list[Path]) -> None:
        self._atomic(notes, mtime_ns=self.world.disk.tick() - self.random.randrange(1, 90_000) * 10**9)

    def _new(self, notes: list[Path]) -> None:
        number = self.world.take_number()
        folder = self.random.choice(("", "", "people/", "a/b/"))
        path = self.folder / f"{folder}person-{number}.md"
        heading = f"# Found {number}\n\nAbout {self.world.WORD}.\n".encode()
        self._put(self._mark(path), self._edited(heading), synced=self.random.random() < 0.5)

    def _rename(self, notes: list[Path]) -> None:
        path = self.random.choice(notes)
        folder = self.random.choice(("", "people/", "moved/"))
        self.made += 1
        target = self.folder / f"{folder}{path.stem}-m{self.made}.md"
        name, new = self._mark(path), self._mark(target)

        def rename() -> bool:
            (self.folder / new).parent.mkdir(parents=True, exist_ok=True)
            if (self.folder / name).exists() and not (self.folder / new).exists():
                os.rename(self.folder / name, self.folder / new)
                self.world.ledger.rename(name, new)
            return True

        self.steps.append(rename)

    def _delete(self, notes: list[Path]) -> None:
        name = self._mark(self.random.choice(notes))

        def unlink() -> bool:
            old = self._read(self.folder / name)
            if old is not None:
                os.unlink(self.folder / name)
                self.world.ledger.excuse(old)
            return True

        self.steps.append(unlink)

    def _bulk(self, notes: list[Path]) -> None:
        """Rewrite several files quickly one after another, as a git checkout does."""
        for path in self.random.sample(notes, min(len(notes), 4)):
            old = self._read(path)
            if old is not None:
                self._put(self._mark(path), self._edited(old), synced=False)

    def _folder(self, notes: list[Path]) -> None:
        """Rename a folder."""
        folders = sorted({path.parent for path in notes} - {self.folder})
        if not folders:
            self._new(notes)
            return
        folder = self.random.choice(folders)
        name = folder.relative_to(self.folder).as_posix()
        new = f"f{self.world.take_number()}"
        inside = [path for path in notes if folder in path.parents]
        for path in inside:
            self._mark(path)
            self._mark(self.folder / new / path.relative_to(folder))

        def rename() -> bool:
            if (self.folder / name).exists():
                os.rename(self.folder / name, self.folder / new)
                for path in inside:
                    below = path.as_posix().partition(f"/{name}/")[2]
                    self.world.ledger.rename(f"{name}/{below}", f"{new}/{below}")
            return True

        self.steps.append(rename)
