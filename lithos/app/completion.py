"""`lithos completion SHELL`: print a script that completes commands, options and paths."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, Final

import shtab

from lithos.app.options import make_parser
from lithos.server.command.declaring import Invocation
from lithos.server.command.output import print_json

#: Shell completion of an option or argument, by its placeholder in the help.
_PATHS: Final[Mapping[str, Any]] = {
    "PATH": shtab.FILE,
    "FILE": shtab.FILE,
    "SOURCE": shtab.FILE,
    "DIR-or-TAR": shtab.FILE,
    "DIR": shtab.DIRECTORY,
}


def run_completion(invocation: Invocation) -> int:
    """Print the completion script. No files are read or written."""
    shell = invocation.typed["shell"]
    script = write_script(shell)
    if invocation.as_json:
        print_json({"shell": shell, "script": script})
    else:
        print(script)
    return 0


def write_script(shell: str) -> str:
    """Return the completion script for a shell, `bash` or `zsh`."""
    parser = make_parser()
    for action in _list_actions(parser):
        if action.metavar in _PATHS:
            action.complete = _PATHS[action.metavar]  # shtab reads this attribute.
    return shtab.complete(parser, shell)


def _list_actions(parser: argparse.ArgumentParser) -> Iterator[Any]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _list_actions(command)
