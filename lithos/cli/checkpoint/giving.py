"""Where a checkpoint's text comes from, and whose it is."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lithos.cli.checkpoint.storing import Checkpoint
from lithos.cli.hooks.identity import agent_of
from lithos.cli.hooks.places import folder_of, name_of, repository_of

#: Bytes that are read of a file or stdin; more is not a checkpoint.
LARGEST_FILE: Final = 1_000_000


def read_file(path: Path) -> str:
    """The text of a file, at most `LARGEST_FILE` bytes of it. Raises `OSError`."""
    with path.open("rb") as file:
        return file.read(LARGEST_FILE).decode("utf-8", "replace").strip()


def checkpoint_of(
    text: str, typed: Mapping[str, Any], session: str | None, folder: Path | None
) -> Checkpoint:
    """The checkpoint of a text; what was typed goes before what the client told."""
    return Checkpoint(
        text=text,
        agent=agent_of(typed, os.environ),
        session=typed.get("session") or session,
        project=name_of(repository_of(folder_of(folder)).name),
        at=time.gmtime(),
    )
