"""What can be typed for the commands that look for faults."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def add_checks(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Add the commands; `add` makes the parser for a name and a help text."""
    validate = add("validate", "look for mistakes in the note files; nothing is changed without --fix")
    validate.add_argument(
        "--fix",
        action=argparse.BooleanOptionalAction,
        help="write missing ids, titles and authors and new ids for duplicates (default: no)",
    )
    validate.add_argument("--strict", action="store_true", help="exit 1 when issues remain")
    add("doctor", "check the whole installation and say what to do; exit 1 when something is wrong")
