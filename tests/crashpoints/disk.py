"""Model of a disk: effects of system calls, data that syncs make safe, and the content after a crash.

The model follows ALICE (Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014) and CrashMonkey
(Mohan et al., OSDI 2018). A run is recorded once as a list of operations. From this list, the disk after a
crash at any operation is computed. The bytes of a file are safe once the file is synced. A name is safe once
its folder is synced. Before that, a power failure may keep any part of the bytes and names. A killed process
loses nothing.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random

from attrs import define, field, frozen

#: Number of bytes that a disk writes atomically.
SECTOR = 512


@define(eq=False)
class File:
    """The bytes of a file, independent of its names. `pending` contains changes that have not been synced."""

    content: bytearray = field(factory=bytearray)
    safe: bytes = b""
    pending: list[Written | Cut] = field(factory=list)
    mtime_ns: int = 0


@define(eq=False)
class Folder:
    """The names in a folder (`entries`), and the names that are safe."""

    entries: dict[str, File | Folder] = field(factory=dict)
    safe: dict[str, File | Folder] = field(factory=dict)


Node = File | Folder


@frozen(eq=False)
class Named:
    """Names that a creation, link, rename or unlink changes together. None stands for a removed name."""

    changes: tuple[tuple[Folder, str, Node | None], ...]


@frozen(eq=False)
class Written:
    """Bytes that were written at an offset."""

    file: File
    offset: int
    data: bytes
    mtime_ns: int


@frozen(eq=False)
class Cut:
    """A change of a file's length."""

    file: File
    size: int
    mtime_ns: int


@frozen(eq=False)
class Synced:
    """An `fsync` of a file or folder."""

    node: Node


Operation = Named | Written | Cut | Synced
#: Content of a disk after a crash: bytes and modification time (ns) by path. The value of a folder is None.
Image = dict[str, tuple[bytes, int] | None]


@define(eq=False)
class Disk:
    """Files and folders of a recording. The recorded operations are applied one by one.

    A node may belong to only one disk at a time.
    """

    root: Folder
    #: Name changes that are not safe yet. Each change becomes safe completely or not at all, as with a
    #: journal.
    unsafe: list[tuple[tuple[Folder, str, Node | None], ...]] = field(factory=list)

    def apply(self, operation: Operation) -> None:
        """Apply an operation to the disk."""
        if isinstance(operation, Named):
            for folder, name, node in operation.changes:
                _set(folder.entries, name, node)
            self.unsafe.append(operation.changes)
        elif isinstance(operation, Synced):
            self._sync(operation.node)
        else:
            change(operation.file.content, operation)
            operation.file.pending.append(operation)
            operation.file.mtime_ns = operation.mtime_ns

    def _sync(self, node: Node) -> None:
        if isinstance(node, File):
            node.safe, node.pending = bytes(node.content), []
            return
        reached, kept, safe = {id(node)}, [], []
        for changes in reversed(self.unsafe):  # a synced rename makes earlier changes in its source safe
            if any(id(folder) in reached for folder, _, _ in changes):
                reached |= {id(folder) for folder, _, _ in changes}
                safe.append(changes)
            else:
                kept.append(changes)
        self.unsafe = kept[::-1]
        for folder, name, named in itertools.chain.from_iterable(reversed(safe)):
            _set(folder.safe, name, named)

    # -- disk after a crash ---------------------------------------------------------------------

    def after_kill(self) -> Image:
        """Return the complete content. The system continues to run after a process is killed."""
        return dict(_walk(self.root, "", lambda folder: folder.entries, lambda file: bytes(file.content)))

    def after_power_loss(self) -> Image:
        """Return only the synced data."""
        return dict(_walk(self.root, "", lambda folder: folder.safe, lambda file: file.safe))

    def after_late_data(self) -> Image:
        """Return all names but only the synced bytes, as a file system with delayed allocation does."""
        return dict(_walk(self.root, "", lambda folder: folder.entries, lambda file: file.safe))

    def after_luck(self, random: Random) -> Image:
        """Return the synced data and a random part of the rest: any names, and any sectors of the bytes."""
        names = {id(folder): dict(folder.safe) for folder in _folders(self.root)}
        for changes in self.unsafe:
            if random.random() < 0.5:
                for folder, name, node in changes:
                    _set(names.setdefault(id(folder), dict(folder.safe)), name, node)

        def lucky(file: File) -> bytes:
            content = bytearray(file.safe)
            for operation in file.pending:
                _change_partly(content, operation, random)
            return bytes(content)

        return dict(_walk(self.root, "", lambda folder: names.get(id(folder), folder.safe), lucky))


def change(content: bytearray, operation: Written | Cut) -> None:
    """Write bytes or set the length. As in file systems, gaps are filled with zeros."""
    if isinstance(operation, Cut):
        del content[operation.size :]
        content.extend(bytes(operation.size - len(content)))
        return
    content.extend(bytes(max(0, operation.offset - len(content))))
    content[operation.offset : operation.offset + len(operation.data)] = operation.data


def _change_partly(content: bytearray, operation: Written | Cut, random: Random) -> None:
    """Apply an operation completely, not at all, or (for a write) for random sectors."""
    luck = random.randrange(3)
    if luck == 0 or (luck == 1 and isinstance(operation, Cut)):
        return
    if luck == 2 or isinstance(operation, Cut):
        change(content, operation)
        return
    for start in range(0, len(operation.data), SECTOR):
        if random.random() < 0.5:
            part = operation.data[start : start + SECTOR]
            change(content, Written(operation.file, operation.offset + start, part, operation.mtime_ns))


def _set(entries: dict[str, Node], name: str, node: Node | None) -> None:
    entries.pop(name, None)
    if node is not None:
        entries[name] = node


def _folders(root: Folder) -> Iterator[Folder]:
    """Yield every folder that safe or unsafe names can reach."""
    yield root
    seen: set[int] = set()
    for node in [*root.entries.values(), *root.safe.values()]:
        if isinstance(node, Folder) and id(node) not in seen:
            seen.add(id(node))
            yield from _folders(node)


def _walk(
    folder: Folder,
    prefix: str,
    names: Callable[[Folder], Mapping[str, Node]],
    content: Callable[[File], bytes],
) -> Iterator[tuple[str, tuple[bytes, int] | None]]:
    for name, node in names(folder).items():
        path = prefix + name
        if isinstance(node, File):
            yield path, (content(node), node.mtime_ns)
        else:
            yield path, None
            yield from _walk(node, f"{path}/", names, content)


def build(image: Image, target: Path) -> None:
    """Write the content of a disk to a new folder."""
    target.mkdir()
    for path, content in image.items():
        file = target / path
        if content is None:
            file.mkdir()
            continue
        data, mtime_ns = content
        file.write_bytes(data)
        os.utime(file, ns=(mtime_ns, mtime_ns))
