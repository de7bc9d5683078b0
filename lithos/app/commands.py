"""Commands that do not belong to a capability: serve, demo and completion."""

from __future__ import annotations

import argparse
from typing import Final

from lithos.server.command.declaring import CliCommand, flag, take

#: Shells that `lithos completion` supports.
SHELLS = ("bash", "zsh")

COMMANDS: Final = (
    CliCommand("serve", "serve the notes to agents over MCP", "lithos.app.serving.serve:run_serve", (
        take("-t --transport", "how clients connect (default: stdio)", choices=("stdio", "sse", "http")),
        take("--host", "address to listen on (default: 127.0.0.1)"),
        take("-p --port", "port to listen on (default: 8765; 0: any free port)", int),
        flag("--watch", "detect edits by other programs", action=argparse.BooleanOptionalAction),
        take("--tools", "set of tools that clients see", choices=("core", "standard", "full", "connector")),
        take("--public-url URL", "public address of this server for remote clients, which sign "
                                 "in through OAuth"),
    ), group="serve and connect", place=10, takes_several=True, folder="spared"),
    CliCommand("demo", "watch two agents share notes and tasks, in a temporary folder",
        "lithos.app.demo.play:run_demo", (
        flag("--stay",
            "replay a day of eight agents and serve its console until Ctrl+C; with --vault, "
            "replay it in a copy of your vault"),
        take("--port N", "port of the console (default: a free one)", int),
    ), group="serve and connect", place=280, folder="unused"),
    CliCommand("completion", "print a script that completes commands and options in a shell",
        "lithos.app.completion:run_completion",
        (take("shell SHELL", f"one of {', '.join(SHELLS)}", choices=SHELLS),),
        needs_session=False,  # A shell must not show configuration errors when it starts.
        group="admin", place=330,
    ),
)  # fmt: skip
