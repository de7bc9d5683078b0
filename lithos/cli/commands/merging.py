"""`lithos merge-driver`: the merge driver of git for notes (docs/spec/copies.md §3)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from lithos.cli.options import Invocation
from lithos.cli.output import print_json, warn
from lithos.cli.session import CommandFailed
from lithos.core.history.file_merge import FileMerge, merge_files
from lithos.core.history.marking import MARKER_SIZE, Markers
from lithos.stores import open_regular, replace_file

#: Git stops at more than 128 instead of leaving a conflict whose file lacks one side.
_BROKEN: Final = 129
#: Characters of a marker that anybody can want.
_LONGEST_MARKER: Final = 1_000


def run_merge_driver(invocation: Invocation) -> int:
    """Merge into the file of our side; 1 when a person has to look at it. Raises `CommandFailed`."""
    typed = invocation.typed
    markers = Markers(
        ours=_label(typed.get("ours_name"), "ours"),
        theirs=_label(typed.get("theirs_name"), "theirs"),
        size=min(typed.get("marker_size", MARKER_SIZE), _LONGEST_MARKER),
    )
    ours: Path = typed["ours"]
    name = typed.get("path") or str(ours)
    try:
        base, mine, theirs = (_read(path) for path in (typed["base"], ours, typed["theirs"]))
        merged = merge_files(base, mine, theirs, markers)
        if merged.data is not None and merged.data != mine:
            _write(ours, merged.data)
    except OSError as failure:
        raise CommandFailed(
            f"{name} was not merged: {failure}. Check that the files are readable and their folder writable, "
            "then merge again.",
            _BROKEN,
        ) from failure
    if invocation.as_json:
        print_json({"path": name, "conflicts": merged.conflicts, "binary": merged.data is None})
    elif merged.conflicts:
        warn(_tell(name, merged))
    return 1 if merged.conflicts else 0


def _label(name: str | None, usual: str) -> str:
    """A name on one line; git may give an empty one."""
    return " ".join(name.split()) if name and name.strip() else usual


def _read(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read()


def _write(path: Path, data: bytes) -> None:
    mode = path.stat().st_mode & 0o777
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        replace_file(path, data, temporary, mode)
    finally:
        temporary.unlink(missing_ok=True)


def _tell(name: str, merged: FileMerge) -> str:
    if merged.data is None:
        return f"{name} is a binary file and was not merged: it is ours. Choose one, then git add it."
    several = f"{merged.conflicts} conflicts" if merged.conflicts > 1 else "a conflict"
    return f"{name} has {several}: choose between the markers, then git add it."
