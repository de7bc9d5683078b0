"""What can be typed for the commands that work on the data directory itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from lithos.core.reconcile import SCOPES


def add_maintenance(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """Add the commands; `add` makes the parser for a name and a help text."""
    _add_reindex(add("reindex", "bring the search indexes in line with the notes"))
    _add_reconcile(add("reconcile", "repair what is derived from the notes; the notes stay as they are"))
    _add_recalibrate(add("recalibrate-salience", "lift the salience of notes that sank too low"))
    _add_extract(add("extract-entities", "find the names in all notes and keep them in the notes"))


def _add_reindex(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--clear", action=argparse.BooleanOptionalAction, help="begin with empty indexes (default: no)"
    )
    parser.add_argument("--force", dest="clear", action="store_true", help="the same as --clear")


def _add_reconcile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-s", "--scope", choices=("all", *SCOPES), help="what to repair, each by itself (default: all)"
    )
    parser.add_argument(
        "--accept-vanished",
        action="store_true",
        help="drop the notes whose files have vanished, also from a running server; nothing else",
    )
    _add_dry_run(parser)
    parser.add_argument("--json-output", dest="as_json", action="store_true", help="the same as --json")


def _add_recalibrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--floor", type=_fraction, metavar="F", help="least salience, 0 to 1 (default: lcma.salience_floor)"
    )
    _add_dry_run(parser)


def _add_extract(parser: argparse.ArgumentParser) -> None:
    _add_dry_run(parser)
    parser.add_argument("--force", action="store_true", help="also replace entities that a person chose")


def _add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="only tell what would change")


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value
