"""How a command is declared, and what was typed of it.

A capability declares its commands in its `commands.py`. Each call reads these modules, so they import nothing
but this one; what runs a command is named by a string, and imported when it runs.
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

#: An option or argument for `add_argument`: its names, and the rest. This has `alone` beside, for those of a
#: command that exclude each other, and `under`, the heading of those that belong together.
Taken = tuple[list[str], dict[str, Any]]


def take(spelling: str, text: str, kind: Callable[[str], Any] | None = None, **more: Any) -> Taken:
    """What takes a value, spelled as in its help: `-n --limit N`, `query QUERY`; `kind` reads the value."""
    *names, last = spelling.split(" ")
    if last.startswith("-") or not names:
        names.append(last)
    else:
        more["metavar"] = last
    return names, {**more, "type": kind, "help": text}


def flag(spelling: str, text: str, **more: Any) -> Taken:
    """What is given or not."""
    return spelling.split(" "), {"action": "store_true", **more, "help": text}


class CliCommand(NamedTuple):
    """A command, or a part of one.

    `runs` names a module, imported only then, and its function, which gets a `Session`, or where
    `needs_session` is False the `Invocation`. Which of `parts` it is has the name `chosen`.
    """

    name: str
    help: str
    runs: str = ""
    takes: Sequence[Taken] = ()
    description: str | None = None
    needs_session: bool = True
    chosen: str = ""
    parts: Sequence[CliCommand] = ()
    #: Commands are listed by their places.
    place: int = 0
    #: As `runs`: gets the `Invocation` where a client runs the command as its hook, with `--hook`.
    hook: str = ""
    #: Whether it can be about several of the named vaults.
    takes_several: bool = False
    #: Whether it opens databases itself, so that what all capabilities declare is loaded first.
    reads_databases: bool = False
    #: What it does where the folder of the notes is missing, or is no folder for notes. `needed`: it is not
    #: run. `spared`: it looks at the folders of named vaults by itself. `made`: so it does, and makes the
    #: folder. `unused`: it has another folder.
    folder: Literal["needed", "spared", "made", "unused"] = "needed"


@frozen
class Invocation:
    """The parsed arguments; `typed` holds only options that were given explicitly."""

    declared: CliCommand
    config: Path | None
    data_dir: Path | None
    as_json: bool
    typed: dict[str, Any]
    #: What `--vault` was given, each as it stands; a single one that is no `NAME=PATH` is in `typed`, too.
    vaults: tuple[str, ...] = ()
    #: Starts servers in this process; None where only a running one is asked.
    local: LocalServers | None = None

    @property
    def command(self) -> str:
        """The name of the command."""
        return self.declared.name


def number(
    name: str, read: Callable[[str], Any], accepts: Callable[[Any], bool], wanted: str = ""
) -> Callable[[str], Any]:
    """Reads numbers that are accepted; a refusal of the parser says what is wanted, or else has the name."""

    def convert(text: str) -> Any:
        value = read(text)
        if not accepts(value):
            raise argparse.ArgumentTypeError(wanted) if wanted else ValueError(text)
        return value

    convert.__name__ = name
    return convert


count = number("_count", int, lambda count: count >= 1)
moment = number("_time", parse_time, lambda moment: True)
DRY_RUN: Final = flag("--dry-run", "only tell what would change")
