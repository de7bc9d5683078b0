"""Records of the deletion guard that persist over restarts.

The module also stores and reads the orders that a command leaves for the guard in `.lithos`.

`vanished.json` lists vanished files whose notes are still indexed. `lithos reconcile --accept-vanished`
writes `accept-vanished.json`. This file lists the vanished files that the operator allows Lithos to remove
from the indexes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from lithos.kernel.databases.private_files import replace_file
from lithos.kernel.log import get_logger

log = get_logger("lithos.vanished")

KEPT_NAME = "vanished.json"
APPROVAL_NAME = "accept-vanished.json"


class VanishedFiles:
    """The lists of kept files and of approved removals, as paths relative to `knowledge/`. Methods block."""

    def __init__(self, private: Path) -> None:
        self._kept = private / KEPT_NAME
        self._approval = private / APPROVAL_NAME

    def kept(self) -> frozenset[str]:
        """Return the paths of vanished files whose notes a server still indexes."""
        return _read(self._kept)

    def keep(self, paths: Iterable[str]) -> None:
        """Replace the list of kept files. If `paths` is empty, delete the list."""
        _write(self._kept, paths)

    def approved(self) -> frozenset[str]:
        """Return the paths of vanished files that the operator allows Lithos to remove from the indexes."""
        return _read(self._approval)

    def approve(self, paths: Iterable[str]) -> None:
        """Record that the operator allows Lithos to remove these vanished files from the indexes.

        A running server reads the record within seconds. Otherwise, the next start of a server reads it.
        """
        _write(self._approval, paths)

    def is_approval_waiting(self) -> bool:
        """Return whether there is an approval that no server has carried out yet."""
        return self._approval.exists()

    def settle_approval(self) -> None:
        """Delete the approval after the server has carried it out."""
        self._approval.unlink(missing_ok=True)


def _read(file: Path) -> frozenset[str]:
    try:
        content = json.loads(file.read_bytes())
        return frozenset(path for path in content["paths"] if isinstance(path, str))
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, KeyError, TypeError) as failure:
        log.warning("list of vanished files unreadable", file=str(file), reason=str(failure))
        return frozenset()


def _write(file: Path, paths: Iterable[str]) -> None:
    listed = sorted(paths)
    if not listed:
        file.unlink(missing_ok=True)
        return
    replace_file(file, json.dumps({"paths": listed}).encode())
