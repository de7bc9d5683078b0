"""Which process listens on a port, where the system tells (Linux). Blocks for some milliseconds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LISTENING = "0A"


def name_listener(port: int) -> str | None:
    """The process that listens on a TCP port of this machine as `process 12 (nginx)`; None when unknown.

    Processes of other users are only known to an administrator.
    """
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for process in Path("/proc").glob("[0-9]*") if sockets else ():
        with suppress(OSError):  # it ended meanwhile, or is somebody else's
            for descriptor in os.listdir(process / "fd"):
                if os.readlink(process / "fd" / descriptor) in sockets:
                    return f"process {process.name} ({(process / 'comm').read_text().strip()})"
    return None


def _listening_inodes(port: int) -> Iterator[str]:
    """Lines are `number: address:port remote:port state … uid timeout inode`, numbers in hexadecimal."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]
