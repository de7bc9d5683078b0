"""`lithos connect claude-code --plugin DIR`: the plugin that starts this installation, ready to try."""

from __future__ import annotations

import shlex
from pathlib import Path

from lithos.cli.connecting.target import find_options, find_program
from lithos.cli.output import print_json, print_line
from lithos.cli.plugin.writing import ForeignFolder, PluginTarget, write_plugin
from lithos.cli.session import CommandFailed, Session


def run_plugin(session: Session) -> int:
    """Write the plugin of Claude Code and say how to try it. Raises `CommandFailed`."""
    typed = session.invocation.typed
    if typed.get("client") != "claude-code":
        raise CommandFailed("--plugin is for claude-code; print what others need without it.", 2)
    directory = Path(typed["plugin"]).absolute()
    target = PluginTarget(find_program(), find_options(session))
    try:
        files = write_plugin(directory, target)
    except ForeignFolder as foreign:
        raise CommandFailed(str(foreign), 2) from foreign
    if session.invocation.as_json:
        print_json(
            {"client": "claude-code", "plugin": str(directory), "files": [str(file) for file in files]}
        )
        return 0
    for file in files:
        print_line(f"  {file.relative_to(directory)}")
    print_line(f"The plugin is in {directory}. Start Claude Code with it:")
    print_line(f"  claude --plugin-dir {shlex.quote(str(directory))}")
    return 0
