"""The `lithos adopt` command."""

from __future__ import annotations

from typing import Final

from lithos.server.command.declaring import CliCommand, flag, take

#: Equals `adopt.model_clients.CLIENTS`, which takes longer to import. A test compares the two.
NAMES: Final = ("claude-code", "codex")

COMMANDS: Final = (
    CliCommand("adopt", "serve the memory files of an agent client as notes, in place",
        "lithos.adopt.commands_adopting:run_adopt", (
        take("client CLIENT", f"one of {', '.join(NAMES)}", nargs="?", choices=NAMES, default=None),
        take("--project DIR", "folder of one project (default: this folder)"),
        flag("--all", "all projects of the client", dest="everything"),
        take("--folder DIR", "memory folder, if it is not in the usual place"),
        flag("--copy", "copy the files into the vault once instead", alone=True),
        flag("--remove", "stop serving the files; they stay as they are", alone=True),
        flag("--list", "list the adopted folders", alone=True, dest="listing"),
        ),
        "Serve the memory files of an agent client as notes below memory/CLIENT/PROJECT/. The files stay in "
        "place, and the client reads and writes them as before. A running server takes them over at once.",
        group="serve and connect", place=35,
    ),
)  # fmt: skip
