"""Declarations of commands, and their parsed arguments.

A capability declares its commands in its `commands.py`. Every call of `lithos` imports these modules, so they
import only this module. The function that carries out a command is named by a string, and imported when it is
needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from attrs import frozen

from lithos.kernel.values.times import parse_time

if TYPE_CHECKING:
    from lithos.server.command.ask_ports import LocalServers

#: An option or argument: its names and the keywords for `add_argument`. Two more keywords are allowed.
#: `alone` marks options that exclude each other. `under` is the heading of a group of options.
Taken = tuple[list[str], dict[str, Any]]


def take(spelling: str, text: str, kind: Callable[[str], Any] | None = None, **more: Any) -> Taken:
    """Declare an option or argument with a value.

    `spelling` is its form in the help (`-n --limit N`, `query QUERY`).

    `kind` converts the text of the value.
    """
    *names, last = spelling.split(" ")
    if last.startswith("-") or not names:
        names.append(last)
    else:
        more["metavar"] = last
    return names, {**more, "type": kind, "help": text}


def flag(spelling: str, text: str, **more: Any) -> Taken:
    """Declare an option without a value."""
    return spelling.split(" "), {"action": "store_true", **more, "help": text}


#: Headings under which `lithos --help` lists the commands.
GROUPS: Final = ("serve and connect", "read and search", "history", "upkeep", "admin")


class CliCommand(NamedTuple):
    """A command or subcommand.

    `runs` names a function as `module:function`. The function gets a `CommandSession`, or the `Invocation` if
    `needs_session` is False. `chosen` is the name of the argument that selects one of `parts`.
    """

    name: str
    help: str
    runs: str = ""
    takes: Sequence[Taken] = ()
    description: str | None = None
    needs_session: bool = True
    chosen: str = ""
    parts: Sequence[CliCommand] = ()
    #: One of `GROUPS`. A subcommand has no group.
    group: str = ""
    #: Position of the command in its group.
    place: int = 0
    #: Function in the form of `runs`. It gets the `Invocation` when a client runs the command with `--hook`.
    hook: str = ""
    #: Whether the command can work on several named vaults at once.
    takes_several: bool = False
    #: Whether the command opens databases itself. If it does, all declarations are loaded first.
    reads_databases: bool = False
    #: How the command treats a notes folder that is missing or unusable. `needed`: the command is refused.
    #: `spared`: the command itself checks the folders of named vaults. `made`: as `spared`, and the command
    #: also creates a missing folder. `unused`: the command uses another folder.
    folder: Literal["needed", "spared", "made", "unused"] = "needed"


@frozen
class Invocation:
    """Parsed arguments of a command. `typed` contains only the options that the user gave."""

    declared: CliCommand
    config: Path | None
    data_dir: Path | None
    as_json: bool
    typed: dict[str, Any]
    #: Values of `--vault`, unchanged. A single value that is not `NAME=PATH` is also in `typed`.
    vaults: tuple[str, ...] = ()
    #: Starts servers in this process. None if the command uses only a running server.
    local: LocalServers | None = None

    @property
    def command(self) -> str:
        """Name of the command."""
        return self.declared.name


def number(
    name: str, read: Callable[[str], Any], accepts: Callable[[Any], bool], wanted: str = ""
) -> Callable[[str], Any]:
    """Return a converter of numbers for the argument parser.

    The converter's error messages show `wanted`, or `name` if `wanted` is empty.
    """

    def convert(text: str) -> Any:
        value = read(text)
        if not accepts(value):
            raise argparse.ArgumentTypeError(wanted) if wanted else ValueError(text)
        return value

    convert.__name__ = name
    return convert


count = number("_count", int, lambda count: count >= 1)
moment = number("_time", parse_time, lambda moment: True)
DRY_RUN: Final = flag("--dry-run", "show what would change, but change nothing")
