"""The files of a vault that are no notes: images, PDFs and the like. Everything here blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator


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
