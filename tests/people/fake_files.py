"""File system in memory that fulfils the contract of `SystemCalls`.

The function `reach` gets the name of each system call before the product makes the call. Other parties can
then act. If a file has a lease, a person's open() for writing blocks until the lease ends, as in the kernel.
It then continues with the same file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import Any

import attrs

from lithos.notes.files.system_calls import UNNAMED

#: System calls that a file system needs for each capability of `Protection`.
NEEDED = {
    "exchange": "exchange", "no_replace": "rename_new", "links": "link", "leases": "lease",
    "unnamed": "link_unnamed",
}  # fmt: skip
#: Every file was saved long ago. Only leases can therefore reveal a running save, which is the hardest case.
NOW = 1_000_000.0


@attrs.define(eq=False)
class Inode:
    """A file with its `names`, its open writers, and its leases by descriptor.

    The value False means that a lease is being broken.
    """

    number: int
    data: bytes = b""
    mode: int = stat.S_IFREG | 0o644
    names: int = 0
    writers: int = 0
    leases: dict[int, bool] = attrs.field(factory=dict)


def nothing(call: str) -> None:
    """Do nothing, because no other party acts."""


class FakeCalls:
    """System calls of the product. `lacking` contains calls that this file system does not support."""

    def __init__(self, lacking: frozenset[str] = frozenset(), reach: Callable[[str], None] = nothing) -> None:
        self.lacking = lacking
        self.reach = reach
        self.names: dict[str, Inode] = {}
        self.opened: dict[int, tuple[Inode, int]] = {}
        self.calls = 0
        #: All answers that the product has received. Its next steps can depend only on these answers.
        self.answers: list[Any] = []
        self._descriptors = 2
        self._inodes = 0
        self._tokens = 0

    # -- for all parties ------------------------------------------------------------------------------

    def new_inode(self, data: bytes = b"") -> Inode:
        self._inodes += 1
        return Inode(self._inodes, data)

    def put(self, path: str, data: bytes) -> Inode:
        """Create a file that exists before the simulation starts."""
        inode = self.new_inode(data)
        self._name(path, inode)
        return inode

    def _name(self, path: str, inode: Inode) -> None:
        old = self.names.get(path)
        if old is not None:
            old.names -= 1
        self.names[path] = inode
        inode.names += 1

    def _unname(self, path: str) -> Inode:
        inode = self.find(path)
        del self.names[path]
        inode.names -= 1
        return inode

    def find(self, path: str) -> Inode:
        if path not in self.names:
            self._answer("missing")
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self.names[path]

    # -- the system calls -----------------------------------------------------------------------------

    def _begin(self, call: str, *, is_private: bool = False) -> None:
        """Begin a system call.

        With `is_private`, no other party sees the file, so the order does not matter.
        """
        if not is_private:
            self.reach(call)
        self.calls += 1
        if call in self.lacking:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    def _answer(self, value: Any) -> Any:
        self.answers.append(value)
        return value

    def open(self, path: str, flags: int, mode: int = 0o666) -> int:
        self._begin("open", is_private=bool(flags & (os.O_CREAT | os.O_DIRECTORY)))
        if flags == UNNAMED:
            return self._describe(self.new_inode(), os.O_WRONLY)
        if flags & os.O_DIRECTORY:
            return self._describe(self.new_inode(), os.O_RDONLY)
        if flags & os.O_CREAT:
            if path in self.names:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            self._name(path, self.new_inode())
        return self._describe(self.find(path), flags)

    def pin(self, path: str) -> int:
        self._begin("pin", is_private=path.endswith(".swap") and self.find(path).names == 1)
        return self._describe(self.find(path), os.O_RDONLY)

    def _describe(self, inode: Inode, flags: int) -> int:
        self._descriptors += 1
        self.opened[self._descriptors] = (inode, flags)
        if flags & os.O_ACCMODE != os.O_RDONLY:
            inode.writers += 1
        return self._descriptors

    def close(self, descriptor: int) -> None:
        self._begin("close", is_private=not self.opened[descriptor][0].leases)
        inode, flags = self.opened.pop(descriptor)
        inode.leases.pop(descriptor, None)
        if flags & os.O_ACCMODE != os.O_RDONLY:
            inode.writers -= 1

    def read(self, descriptor: int) -> bytes:
        self._begin("read")
        data: bytes = self._answer(self.opened[descriptor][0].data)
        return data

    def write(self, descriptor: int, data: memoryview) -> int:
        self._begin("write", is_private=True)
        inode, _ = self.opened[descriptor]
        inode.data += bytes(data)
        return len(data)

    def fsync(self, descriptor: int) -> None:
        self._begin("fsync", is_private=True)

    def sync_all(self) -> None:
        self._begin("sync_all", is_private=True)

    def fchmod(self, descriptor: int, mode: int) -> None:
        self._begin("fchmod", is_private=True)
        inode, _ = self.opened[descriptor]
        inode.mode = stat.S_IFREG | mode

    def fstat(self, descriptor: int) -> os.stat_result:
        inode, flags = self.opened[descriptor]
        self._begin("fstat", is_private=flags & os.O_ACCMODE != os.O_RDONLY)
        return self._status(inode)

    def lstat(self, path: str) -> os.stat_result:
        self._begin("lstat")
        return self._status(self.find(path))

    def _status(self, inode: Inode) -> os.stat_result:
        self._answer((inode.number, len(inode.data), inode.mode))
        plain = (inode.mode, inode.number, 1, inode.names, 0, 0, len(inode.data), 0, 0, 0)
        return os.stat_result(plain, {"st_mtime_ns": 0, "st_mtime": 0.0, "st_ctime": 0.0})

    def mkdir(self, path: str) -> None:
        self._begin("mkdir", is_private=True)

    def rename(self, source: str, target: str) -> None:
        self._begin("rename", is_private=source.endswith(".tmp"))
        inode = self.find(source)
        self._unname(source)
        self._name(target, inode)

    def exchange(self, one: str, other: str) -> None:
        self._begin("exchange")
        first, second = self.find(one), self.find(other)
        self.names[one], self.names[other] = second, first
        self._answer("exchanged")

    def rename_new(self, source: str, target: str) -> None:
        self._begin("rename_new")
        inode = self.find(source)
        self._expect_free(target)
        self._unname(source)
        self._name(target, inode)

    def link(self, source: str, target: str) -> None:
        self._begin("link")
        inode = self.find(source)
        self._expect_free(target)
        self._name(target, inode)

    def link_unnamed(self, descriptor: int, target: str) -> None:
        self._begin("link_unnamed", is_private=target.endswith(".swap"))
        self._expect_free(target)
        self._name(target, self.opened[descriptor][0])

    def _expect_free(self, target: str) -> None:
        if target in self.names:
            self._answer("taken")
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)

    def unlink(self, path: str) -> None:
        self._begin("unlink")
        self._unname(path)

    def lease(self, descriptor: int) -> None:
        self._begin("lease")
        inode, _ = self.opened[descriptor]
        if inode.writers:
            self._answer("busy")
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        inode.leases[descriptor] = True

    def is_leased(self, descriptor: int) -> bool:
        self._begin("is_leased")
        inode, _ = self.opened[descriptor]
        leased: bool = self._answer(inode.leases.get(descriptor, False))
        return leased

    def end_lease(self, descriptor: int) -> None:
        self._begin("end_lease")
        self.opened[descriptor][0].leases.pop(descriptor, None)

    def token(self) -> str:
        self._tokens += 1
        return f"{self._tokens:08x}"

    def now(self) -> float:
        return NOW

    def sleep(self, seconds: float) -> None:
        self._begin("sleep")
