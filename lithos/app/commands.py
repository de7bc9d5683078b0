"""The commands of no capability: serve, demo and completion."""

from __future__ import annotations

import argparse
from typing import Final

from lithos.server.command.declaring import CliCommand, flag, take

#: Shells that `lithos completion` knows.
SHELLS = ("bash", "zsh")

COMMANDS: Final = (
    CliCommand("serve", "serve the notes to agents over MCP", "lithos.app.serving.serve:run_serve", (
        take("-t --transport", "how clients connect (default: stdio)", choices=("stdio", "sse", "http")),
        take("--host", "address to listen on (default: 127.0.0.1)"),
        take("-p --port", "port to listen on (default: 8765; 0: any)", int),
        flag("--watch", "notice edits by other programs", action=argparse.BooleanOptionalAction),
        take("--tools", "which tools to list", choices=("core", "standard", "full", "connector")),
        take("--public-url URL", "address at which clients elsewhere reach this server; they come by OAuth"),
    ), group="serve and connect", place=10, takes_several=True, folder="spared"),
    CliCommand("demo", "watch two agents share notes and work, on a folder that is thrown away",
        "lithos.app.demo.play:run_demo", (
        flag("--stay",
            "play a day of eight agents and serve its console until Ctrl+C; with --vault, next to its copy"),
        take("--port N", "port of the console (default: a free one)", int),
    ), group="serve and connect", place=280, folder="unused"),
    CliCommand("completion", "print a script that completes commands and options in a shell",
        "lithos.app.completion:run_completion",
        (take("shell SHELL", f"one of {', '.join(SHELLS)}", choices=SHELLS),),
        needs_session=False,  # a shell that starts wants no words about a configuration
        group="admin", place=330,
    ),
)  # fmt: skip
