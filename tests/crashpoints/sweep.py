"""Crashes at every point of a record. The disk of each point is built, and a server is started on it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import apsw
from attrs import define, field

from tests.crashpoints.disk import Disk, Image, build
from tests.crashpoints.recording import recording
from tests.crashpoints.script import Script
from tests.crashpoints.verdict import DATABASES, Verdict

#: Function that returns the disk after a crash.
Crash = Callable[[Disk, Random], Image]
CRASHES: dict[str, Crash] = {
    "kill": lambda disk, _: disk.after_kill(),
    "power loss": lambda disk, _: disk.after_power_loss(),
    "power loss, names first": lambda disk, _: disk.after_late_data(),
    "power loss, by luck": lambda disk, random: disk.after_luck(random),
}


@define
class Swept:
    """Number of crash points, and number of different disks that they lead to."""

    points: int = 0
    disks: int = 0
    #: Crash point, last operation and error of each failure.
    faults: list[tuple[int, str, str]] = field(factory=list)


async def record(folder: Path) -> Script:
    """Run the script once in an empty folder."""
    data = folder / "data"
    data.mkdir()
    with recording(data) as recorder:
        script = Script(recorder, data)
        await script.run()
    assert not script.refused, script.refused
    return script


async def sweep(
    script: Script, mode: str, folder: Path, *, seed: int = 1, every: int = 1, faults: int = 1
) -> Swept:
    """Crash at every point. Points with equal disks are tried once, with all promises up to the last point.

    One in `every` different disks is tried. The sweep stops after `faults` failures.
    """
    swept = Swept(points=len(script.recorder.log) + 1)
    for number, (point, image) in enumerate(_disks(script, mode, seed, folder)):
        if number % every != seed % every:
            continue
        swept.disks += 1
        target = Path(mkdtemp(dir=folder)) / "data"
        build(image, target)
        try:
            await Verdict(script, point, may_lose_manifest=mode != "kill").check(target)
        except Exception as failure:  # noqa: BLE001 - whatever it is, it is what a crash came to
            done = script.recorder.names[point - 1] if point else "nothing"
            swept.faults.append((point, done, f"{type(failure).__name__}: {_first_line(failure)}"))
            if len(swept.faults) >= faults:
                break
        shutil.rmtree(target.parent)
    return swept


def _disks(script: Script, mode: str, seed: int, folder: Path) -> Iterator[tuple[int, Image]]:
    """Yield the last point of each series of equal disks, with the content of the disk."""
    contents = _Contents(folder)
    waiting: tuple[int, Image, str] | None = None
    for point, disk in script.recorder.replay():
        random = Random(f"{seed} {point}")
        image = CRASHES[mode](disk, random)
        key = contents.of(image)
        if waiting is not None and waiting[2] != key:
            yield waiting[0], _with_indexes(script, waiting[0], waiting[1], mode, random)
        waiting = point, image, key
    assert waiting is not None
    yield waiting[0], _with_indexes(script, waiting[0], waiting[1], mode, Random(seed))


def _with_indexes(script: Script, point: int, image: Image, mode: str, random: Random) -> Image:
    """Add the files of native libraries: after a kill all files, otherwise a random part."""
    known = [found for place, found in script.indexes if place <= point]
    if not known:
        return image
    if mode == "kill":
        return image | known[-1]
    chosen = random.choice([{}, known[-1], random.choice(known)])
    damaged = {
        path: content if content is None or random.random() < 0.8 else (content[0][: len(content[0]) // 2], 1)
        for path, content in chosen.items()
    }
    return image | damaged


@define
class _Contents:
    """Hashes of disks by the contents of files and databases. The layout does not count."""

    folder: Path
    _databases: dict[bytes, str] = field(factory=dict)

    def of(self, image: Image) -> str:
        digest = hashlib.blake2b(digest_size=16)
        left = dict(image)
        for name in DATABASES:
            parts = [left.pop(f".lithos/{name}.db{suffix}", None) for suffix in ("", "-wal", "-journal")]
            digest.update(self._database([part[0] if part else None for part in parts]).encode())
        for path, content in sorted(left.items()):
            digest.update(repr((path, content and content[0])).encode())
        return digest.hexdigest()

    def _database(self, parts: list[bytes | None]) -> str:
        key = hashlib.blake2b(
            repr([part and hashlib.blake2b(part).digest() for part in parts]).encode()
        ).digest()
        if key not in self._databases:
            self._databases[key] = self._read(parts) or key.hex()
        return self._databases[key]

    def _read(self, parts: list[bytes | None]) -> str | None:
        """Return a hash of a database's contents. Return None if the database is damaged."""
        if not any(parts):
            return None
        folder = Path(mkdtemp(dir=self.folder))
        try:
            for suffix, part in zip(("", "-wal", "-journal"), parts, strict=True):
                if part is not None:
                    (folder / f"x.db{suffix}").write_bytes(part)
            with suppress(apsw.Error):
                return _dump(folder / "x.db")
            return None
        finally:
            shutil.rmtree(folder)


def _dump(path: Path) -> str | None:
    connection = apsw.Connection(str(path))
    try:
        connection.execute("PRAGMA synchronous=OFF")
        if connection.execute("PRAGMA quick_check").fetchall() != [("ok",)]:
            return None
        digest = hashlib.blake2b(digest_size=16)
        digest.update(str(connection.execute("PRAGMA journal_mode").fetchall()).encode())
        tables = connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
        digest.update(repr(tables).encode())
        for name, sql in tables:
            if sql and sql.startswith("CREATE TABLE"):
                digest.update(repr(connection.execute(f'SELECT * FROM "{name}"').fetchall()).encode())
        return digest.hexdigest()
    finally:
        connection.close()


def _first_line(failure: BaseException) -> str:
    """Return the message of a failure. For a group, return the message of the first member."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return f"{failure}"[:2_000]
