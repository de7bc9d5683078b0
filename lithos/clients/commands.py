"""The commands for clients and their sessions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.principals import check_agent
from lithos.server.command.declaring import CliCommand, count, flag, take

#: Clients that `lithos connect` knows.
CLIENTS = (
    "claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini-cli", "windsurf", "zed", "opencode",
    "openclaw", "agent-zero",
)  # fmt: skip
#: Those that live elsewhere, of which it tells what to enter where.
HOSTED = ("chatgpt", "claude-ai")
_CLIENT: Final = take("--client NAME", "the client's name: without --agent the agent is NAME@HOST")


def agent(text: str) -> str:
    """The name of whoever uses a command."""
    try:
        return check_agent(text)
    except InvalidInput as refusal:
        raise argparse.ArgumentTypeError(refusal.message) from None


COMMANDS: Final = (
    CliCommand("brief", "print a briefing of the running server: what its notes say, within a budget",
        "lithos.clients.commands_sessions:run_brief", (
        take("query QUERY", "what it is about (--hook without: the project's name)", nargs="?"),
        take("--task ID", "the task that it is for"),
        take("--budget N", "most tokens (default: 2000; --hook: 800)", count),
        take("--agent NAME", "who asks, for the audit and private notes", agent),
        take("--since CURSOR", "only what changed after this cursor of an answer"),
        flag("--hook",
            "for a client: at most 800 tokens, and without a server nothing and exit 0, in a second"),
        take("--session ID", "never repeat to this session what was printed before"),
        _CLIENT,
    ), group="read and search", place=30, hook="lithos.clients.hooks.briefing:run_hook"),
    CliCommand("checkpoint", "keep what a session learned as a note of the running server",
        "lithos.clients.commands_sessions:run_checkpoint", (
        take("file FILE", "the text; - for stdin", nargs="?"),
        take("--text TEXT", "the text, at most 16,000 characters"),
        take("--session ID", "whose note it joins (default: the agent's of today)"),
        take("--agent NAME", "who keeps it (default: CLIENT@HOST)", agent),
        _CLIENT,
        flag("--hook",
            "for a client: keep the text, or without one remind the agent; silent without a server, exit 0"),
        ),
        "Keep a text as a note below checkpoints/: one note for each session, each text once. "
        "Give it with --text, in a FILE, or on stdin.",
        group="read and search", place=40, hook="lithos.clients.hooks.checkpoint:run_hook",
    ),
    CliCommand("connect", "connect a client: print what it needs, or write it into its own configuration",
        "lithos.clients.connect.command:run_connect", (
        # A default that is left out would count as a wrong choice.
        take("client CLIENT", f"one of {', '.join((*CLIENTS, *HOSTED))}", nargs="?",
            choices=(*CLIENTS, *HOSTED), default=None),
        flag("--write", "put the entry into the client's configuration", alone=True),
        flag("--remove", "take the entry out again", alone=True),
        flag("--list", "tell which clients are here, and what is connected", alone=True),
        take("--scope", "whose configuration: yours, or that of the project in this folder (default: user)",
            choices=("user", "project")),
        take("--transport",
            "how it connects (default for --write: stdio; http in a project, and for agent-zero)",
            choices=("http", "stdio")),
        take("--name NAME", "what the entry is called (default: lithos)"),
        take("--file PATH", "the client's configuration file, where it is elsewhere", Path),
        take("--agent ID", "the agent id to use there (default: CLIENT@HOST of this machine)", agent),
        take("--plugin DIR", "write a plugin there: server, skill and hooks (claude-code)", alone=True),
        ),
        "Print what a client needs to reach this server, ready to paste. With --write it is put into the "
        "client's own configuration file, where every other setting stays. A backup is kept next to it, and "
        "--remove gives the file back as it was. A file with comments stays as it is.",
        group="serve and connect", place=310, folder="spared",
    ),
    CliCommand("skill", "print the skill (SKILL.md) that teaches an agent to use Lithos",
        "lithos.clients.plugin.writing:run_skill",
        needs_session=False,  # the same for every configuration
        group="serve and connect", place=320,
    ),
)  # fmt: skip
