"""Directory walk that finds the notes and other files of a folder. All functions block.

Files with dot-names are ignored, and so are symlinked files outside the folder. A folder that symlinks lead
to is visited once, so loops end. If its real path is in the walked folder, that path is used. Polling walks
through all notes every second, so the loop must be fast.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from attrs import define, field

from lithos.kernel.log import get_logger
from lithos.kernel.operating_system import CLOSE_ON_EXEC, FOLDER, NO_FOLLOW
from lithos.notes.model.ignored import Ignored

log = get_logger("lithos.vault")

_OPEN = os.O_RDONLY | FOLDER | CLOSE_ON_EXEC | NO_FOLLOW
#: Error numbers if a folder was deleted, is unreadable or is no longer a folder. Files in such a folder count
#: as missing.
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP}


@define
class _Walk:
    """The state of a directory walk.

    The state contains the visited folders, and the symlinked folders still to visit as (prefix, target).
    """

    root: str
    ignored: Ignored
    seen: set[str] = field(factory=set)
    linked: list[tuple[str, str]] = field(factory=list)


def walk_notes(root: str, ignored: Ignored, prefix: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Yield every `.md` file with its path relative to `root`, with `/` as separator. The order is undefined.

    `root` is a real path. All paths begin with `prefix`. Files that match `ignored` are left out.

    Raise `OSError` if a folder exists but cannot be listed.
    """
    walk = _Walk(root, ignored)
    yield from _walk_below(walk, root, prefix)
    while walk.linked:
        prefix, target = min(walk.linked)
        walk.linked.remove((prefix, target))
        yield from _walk_below(walk, target, prefix)


def is_inside(real: str, root: str) -> bool:
    """Return whether the real path `real` is `root` or below `root`, which must also be a real path."""
    return real.startswith(root + os.sep) or real == root


def resolve_below(root: str, path: str) -> str:
    """Resolve a path below a real folder, like `os.path.realpath` but with one system call per name.

    Each system call releases the interpreter lock. While the event loop is busy, the thread must then wait
    for the lock, so fewer calls are faster.
    """
    target, names = root, path.split("/")
    if not {"", os.curdir, os.pardir}.intersection(names):
        for number, name in enumerate(names):
            target = f"{target}{os.sep}{name}"
            try:
                if stat.S_ISLNK(os.lstat(target).st_mode):
                    break
            except OSError:  # a missing path is not a link
                return os.sep.join([target, *names[number + 1 :]])
        else:
            return target
    return os.path.realpath(os.path.join(root, path))


def is_text(name: str) -> bool:
    """Return whether a name is valid UTF-8."""
    return name.isascii() or not any("\udc80" <= character <= "\udcff" for character in name)


def _walk_below(walk: _Walk, top: str, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    folders = [(top, prefix)]
    while folders:
        folder, prefix = folders.pop()
        if folder in walk.seen or (prefix and walk.ignored.covers_folder(prefix)):
            continue
        walk.seen.add(folder)
        try:
            descriptor = os.open(folder, _OPEN)
        except OSError as failure:
            if failure.errno in _NOT_THERE:
                continue
            raise
        try:
            if walk.ignored:
                for path, status in _look_into(walk, descriptor, folder, prefix, folders):
                    if not walk.ignored.covers(path):
                        yield path, status
            else:
                yield from _look_into(walk, descriptor, folder, prefix, folders)
        finally:
            os.close(descriptor)


def _look_into(
    walk: _Walk, descriptor: int, folder: str, prefix: str, folders: list[tuple[str, str]]
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the notes directly in an open folder.

    The subfolders are added to `folders`, or to the linked folders of `walk`.
    """
    with os.scandir(descriptor) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(".") or not is_text(name):
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append((f"{folder}/{name}", f"{prefix}{name}/"))
                elif entry.is_symlink():
                    status = _follow(walk, entry, folder, prefix)
                    if status is not None and stat.S_ISREG(status.st_mode):
                        yield prefix + name, status
                elif name.endswith(".md"):
                    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        yield prefix + name, status
            except OSError:
                continue  # the file vanished or became unreadable after the listing


def _follow(walk: _Walk, entry: os.DirEntry[str], folder: str, prefix: str) -> os.stat_result | None:
    """Return the `stat` result of a symlinked note. A symlinked folder is queued for a later visit."""
    real = os.path.realpath(f"{folder}/{entry.name}")
    if not is_inside(real, walk.root):
        return None
    if entry.is_dir():
        walk.linked.append((f"{prefix}{entry.name}/", real))
        return None
    return entry.stat() if entry.name.endswith(".md") else None
