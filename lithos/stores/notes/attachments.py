"""The files of a vault that are no notes: images, PDFs and the like. Everything here blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Set


def list_attachments(root: str) -> Iterator[str]:
    """The paths of all other files below `root`, with `/`, in no order.

    Dot-names are left out, and what only symlinked folders lead to. A folder that cannot be listed has none.
    """
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        prefix = os.path.relpath(folder, root).replace(os.sep, "/") + "/" if folder != root else ""
        for name in names:
            if not name.startswith(".") and not name.endswith(".md"):
                yield prefix + name


def compare_attachments(root: str, known: Set[str]) -> tuple[tuple[str, bool], ...]:
    """The paths that are new, each with true, and those of `known` that are gone, with false."""
    found = set(list_attachments(root))
    return (*((path, False) for path in known - found), *((path, True) for path in found - known))
