"""The commands of all capabilities, and their parser.

The parser, its help, shell completion and the reference are made of it. Global options may come before or
after the command.
"""

from __future__ import annotations

import argparse
import functools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from lithos import __version__
from lithos.kernel.discovery import declared_in
from lithos.server.command.declaring import CliCommand, Invocation, Taken, flag, take

_DESCRIPTION = "A local knowledge server that many AI agents share: Markdown notes over MCP."
_EPILOG = """\
examples:
  lithos serve -t http                  serve ./data over HTTP for many agents
  lithos serve -t stdio                 serve one client over stdin and stdout
  lithos -d ~/vault search "raft log"   search the notes in ~/vault/knowledge
  lithos serve -t http --vault work=~/work --vault home=~/notes
                                        serve several vaults, each under its name
  lithos wait --task ID --timeout 600   wait until something happens to a task
exit codes: 0 done, 1 failed, 2 usage or configuration, 3 wait timed out, 4 data directory in use
"""


_GLOBAL: Final[Sequence[Taken]] = tuple(
    (names, {**given, "under": "global options"})
    for names, given in (
        take("-c --config PATH", "YAML configuration file", Path),
        take("-d --data-dir PATH", "data directory (default: ./data)", Path),
        take(
            "--vault PATH",
            "serve this folder of Markdown files where it lies; state goes to the data directory. Of several "
            "vaults: NAME=PATH for each, or the NAME of one that is configured",
            action="append",
        ),
        flag(
            "--no-lock",
            "accept a file system without locks; make sure yourself that only one server runs",
            action="store_false",
            dest="lock",
        ),
        flag("--json", "print JSON only", dest="as_json"),
    )
)


def find_commands() -> dict[str, CliCommand]:
    """The commands that packages declare, in their order."""
    found = [command for module in declared_in("commands") for command in module.COMMANDS]
    return {command.name: command for command in sorted(found, key=lambda command: command.place)}


COMMANDS: Final = find_commands()
#: What to use instead of commands and options that are gone, each as a parser's message quotes it.
_RETIRED: Final = {
    "choice: 'recalibrate-salience'": "`lithos recalibrate-salience` is no longer a command. Salience "
    "follows from the counters of a note.",
    "choice: 'bundle'": "`lithos bundle` is no longer a command. Releases run `.ci/bundle.py`.",
    "choice: 'top'": "`lithos top` is no longer a command. Use `lithos inspect health`, the console or "
    "`/metrics`.",
    "arguments: --telemetry-console": "`--telemetry-console` is no longer an option. Use `/metrics`.",
}


class _Parser(argparse.ArgumentParser):
    """A parser that says what to use instead of what is gone."""

    def error(self, message: str) -> NoReturn:
        super().error(next((text for quoted, text in _RETIRED.items() if quoted in message), message))


def parse_arguments(argv: Sequence[str]) -> Invocation:
    """Parse, or exit with 2 and a usage message."""
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


#: The beginning of a vault with a name. `kernel.configuration.vault_entries` reads it in full, but takes too
#: long to import for a hook.
_NAMED_VAULT: Final = re.compile("[a-z0-9-]{1,32}=")
#: Levels of commands: the program, a command, and parts of one in parts of one.
_DEEPEST: Final = 4


def _vault_at(depth: int) -> str:
    """Where a level keeps what `--vault` was given there, since a parser forgets the lists of those above."""
    return f"vault_{depth}"


def _shared_at(depth: int) -> argparse.ArgumentParser:
    """The global options, as a level of commands takes them."""
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    own = {"--vault": {"dest": _vault_at(depth)}}
    _declare(shared, [(names, {**given, **own.get(names[-1], {})}) for names, given in _GLOBAL])
    return shared


@functools.cache  # bounded: a process parses one command line
def make_parser(named: frozenset[str] | None = None) -> argparse.ArgumentParser:
    """All commands and options, made once: for shell completion and for the reference.

    For parsing only the `named` commands have their options: those of all take 15 ms.
    """
    parser = _Parser(
        prog="lithos",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_shared_at(0)],
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--version", action="version", version=f"lithos {__version__}")
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
    """Tell the parser what a command takes."""
    groups: dict[str | bool, Any] = {"": parser}
    for names, given in takes:
        rest = dict(given)
        alone, under = rest.pop("alone", False), rest.pop("under", "")
        if (alone or under) not in groups:
            made = parser.add_mutually_exclusive_group() if alone else parser.add_argument_group(under)
            groups[alone or under] = made
        groups[alone or under].add_argument(*names, **rest)
