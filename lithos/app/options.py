"""Command-line parser for the commands of all capabilities.

The help, the shell completion and the reference are generated from this parser. Global options are accepted
before or after the command.
"""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NoReturn

from lithos import __version__
from lithos.kernel.discovery import declared_in
from lithos.server.command.declaring import GROUPS, CliCommand, Invocation, Taken, flag, take

_DESCRIPTION = "A local knowledge server that many AI agents share: Markdown notes over MCP."
_EPILOG = """\
examples:
  lithos --vault ~/notes serve -t http         serve a folder of notes to many agents over HTTP
  lithos --vault ~/notes connect claude-code   print what Claude Code needs to connect
  lithos --vault ~/notes search "raft log"     search the notes
  lithos --vault ~/notes wait --task ID        wait until a task changes
  lithos --vault work=~/work --vault home=~/notes serve -t http
                                               serve several vaults, each under its name
exit codes: 0 done, 1 failed, 2 usage or configuration, 3 wait timed out, 4 data directory in use
"""


_GLOBAL: Final[Sequence[Taken]] = tuple(
    (names, {**given, "under": "global options"})
    for names, given in (
        take("-c --config PATH", "YAML configuration file", Path),
        take("-d --data-dir PATH", "data directory (default: ./data)", Path),
        take(
            "--vault PATH",
            "folder of Markdown notes, used in place; Lithos keeps its state in the data "
            "directory. For several vaults, repeat it with NAME=PATH, or give the NAME of a "
            "configured vault",
            action="append",
        ),
        flag(
            "--no-lock",
            "accept a file system without locks; you must make sure that only one server runs",
            action="store_false",
            dest="lock",
        ),
        flag("--json", "print JSON only", dest="as_json"),
    )
)


def find_commands() -> dict[str, CliCommand]:
    """Return the commands that packages declare, by name and in the order of the help."""
    found = [command for module in declared_in("commands") for command in module.COMMANDS]
    return {command.name: command for command in sorted(found, key=_order)}


def _order(command: CliCommand) -> tuple[int, int]:
    return GROUPS.index(command.group), command.place


COMMANDS: Final = find_commands()
#: Replacements for removed commands and options. Each key is a part of the parser's error message for one of
#: them.
_RETIRED: Final = {
    "choice: 'recalibrate-salience'": "`lithos recalibrate-salience` is no longer a command. Salience "
    "follows from the counters of a note.",
    "choice: 'bundle'": "`lithos bundle` is no longer a command. Releases run `.ci/bundle.py`.",
    "choice: 'top'": "`lithos top` is no longer a command. Use `lithos inspect health`, the console or "
    "`/metrics`.",
    "arguments: --telemetry-console": "`--telemetry-console` is no longer an option. Use `/metrics`.",
}


class _Parser(argparse.ArgumentParser):
    """Argument parser whose error messages name the replacement for a removed command or option."""

    def error(self, message: str) -> NoReturn:
        super().error(next((text for quoted, text in _RETIRED.items() if quoted in message), message))


def parse_arguments(argv: Sequence[str]) -> Invocation:
    """Parse `argv`, or exit with code 2 and a usage message."""
    given = vars(make_parser(frozenset(argv)).parse_args(argv))
    vaults = tuple(text for depth in range(_DEEPEST) for text in given.pop(_vault_at(depth), ()))
    if len(vaults) == 1 and not _NAMED_VAULT.match(vaults[0]):
        given["vault"] = Path(vaults[0])
    return Invocation(
        declared=COMMANDS[given.pop("command")],
        config=given.pop("config", None),
        data_dir=given.pop("data_dir", None),
        as_json=given.pop("as_json", False),
        typed=given,
        vaults=vaults,
    )


#: Beginning of a named vault. `kernel.configuration.vault_entries` parses the whole value, but importing that
#: module takes too long when a hook runs.
_NAMED_VAULT: Final = re.compile("[a-z0-9-]{1,32}=")
#: Maximum number of command levels: program, command, subcommand, and subcommand of a subcommand.
_DEEPEST: Final = 4


def _vault_at(depth: int) -> str:
    """Return the attribute name for the `--vault` values of a level.

    Separate names are needed because inner parsers drop outer values.
    """
    return f"vault_{depth}"


def _shared_at(depth: int) -> argparse.ArgumentParser:
    """Return the parser for the global options of one command level."""
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    own = {"--vault": {"dest": _vault_at(depth)}}
    _declare(shared, [(names, {**given, **own.get(names[-1], {})}) for names, given in _GLOBAL])
    return shared


class _GroupedHelp(argparse.RawDescriptionHelpFormatter):
    """Help formatter that lists commands under their group headings."""

    def _format_action(self, action: argparse.Action) -> str:
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        lines = []
        for group, commands in groupby(action._choices_actions, lambda each: COMMANDS[each.dest].group):
            lines.append(f"  {group}:\n")
            self._indent()
            lines += [super(_GroupedHelp, self)._format_action(each) for each in commands]
            self._dedent()
        return "".join(lines)


@functools.cache  # bounded: a process parses one command line
def make_parser(named: frozenset[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands and options. Shell completion and the reference use it too.

    If `named` is given, options are added only to those commands, because adding all options takes 15 ms.
    """
    parser = _Parser(
        prog="lithos",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=_GroupedHelp,
        parents=[_shared_at(0)],
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--version", action="version", version=f"lithos {__version__}")
    parser._positionals.title = "commands"
    _add_commands(parser, "command", [*COMMANDS.values()], named, depth=1)
    return parser


def _add_commands(
    parser: argparse.ArgumentParser,
    chosen: str,
    commands: Sequence[CliCommand],
    named: frozenset[str] | None,
    *,
    depth: int,
) -> None:
    added = parser.add_subparsers(dest=chosen, required=True, metavar=chosen.upper())
    for command in commands:
        if named is not None and command.name not in named:
            added.add_parser(command.name, help=command.help, add_help=False)
            continue
        sentence = f"{command.help[0].upper()}{command.help[1:]}." if command.runs else None
        inner = added.add_parser(
            command.name,
            help=command.help,
            description=command.description or sentence,
            parents=[_shared_at(depth)],
            argument_default=argparse.SUPPRESS,
        )
        _declare(inner, command.takes)
        if command.parts:
            _add_commands(inner, command.chosen, command.parts, named, depth=depth + 1)


def _declare(parser: argparse.ArgumentParser, takes: Iterable[Taken]) -> None:
    """Add the options and arguments of a command to `parser`."""
    groups: dict[str | bool, Any] = {"": parser}
    for names, given in takes:
        rest = dict(given)
        alone, under = rest.pop("alone", False), rest.pop("under", "")
        if (alone or under) not in groups:
            made = parser.add_mutually_exclusive_group() if alone else parser.add_argument_group(under)
            groups[alone or under] = made
        groups[alone or under].add_argument(*names, **rest)
