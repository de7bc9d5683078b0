"""What can be typed for backups."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def add_backups(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Add the commands; `add` makes the parser for a name and a help text."""
    backup = add("backup", "copy everything that cannot be rebuilt, also while a server runs")
    backup.add_argument("directory", metavar="DIR", help="where to; empty or absent")
    restore = add("restore", "put a verified backup in the place of the data directory")
    restore.add_argument("source", metavar="DIR-or-TAR", help="what `lithos backup` or `export` made")
    restore.add_argument(
        "--force", action="store_true", help="also where there is content; it is moved aside, not deleted"
    )
    export = add("export", "write notes, agents, tasks, claims, findings and edges as JSON lines")
    export.add_argument("file", metavar="FILE", nargs="?", help="a new file (default for jsonl: stdout)")
    export.add_argument(
        "--format", choices=("jsonl", "tar"), help="tar: a backup in one archive (default: jsonl)"
    )
