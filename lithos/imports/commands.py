"""The `lithos import` command."""

from __future__ import annotations

from typing import Final

from lithos.server.command.declaring import DRY_RUN, CliCommand, flag, take

COMMANDS: Final = (
    CliCommand("import", "import notes from another program; the source is not changed",
        "lithos.imports.commands_importing:run_import", (
        take("source SOURCE", "file or folder to import"),
        take("--from KIND",
            "kind of source (default: detected; an unknown value prints the list of kinds)", dest="kind"),
        take("--into FOLDER", "target folder below the notes folder (default: the notes folder)"),
        take("--agent NAME", "agent name recorded in events and history (default: import)"),
        flag("--recreate", "also import notes again that were imported before and deleted here"),
        DRY_RUN,
    ), group="admin", place=270, reads_databases=True),
)  # fmt: skip
