"""Command-line commands for agent clients and their sessions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.principals import check_agent
from lithos.server.command.declaring import CliCommand, count, flag, take

#: Agent clients that `lithos connect` can configure.
CLIENTS = (
    "claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini-cli", "copilot-cli", "windsurf",
    "zed", "opencode", "openclaw", "agent-zero",
)  # fmt: skip
#: Hosted clients. For these, `lithos connect` prints the steps in their settings.
HOSTED = ("chatgpt", "claude-ai")
_CLIENT: Final = take("--client NAME", "name of the client; without --agent, the agent is NAME@HOST")
_EVENT: Final = take(
    "--event NAME",
    "event of the client, if its input names none; the answer has the client's form",
)


def agent(text: str) -> str:
    """Return `text` if it is a valid agent id, else raise `ArgumentTypeError`."""
    try:
        return check_agent(text)
    except InvalidInput as refusal:
        raise argparse.ArgumentTypeError(refusal.message) from None


COMMANDS: Final = (
    CliCommand("brief", "print a briefing from the running server: the relevant notes within a token budget",
        "lithos.clients.commands_sessions:run_brief", (
        take("query QUERY", "question or topic (default with --hook: the project's name)", nargs="?"),
        take("--task ID", "id of the task that the briefing is about"),
        take("--project KEY", "project whose notes come first, such as github.com/acme/shop"),
        take("--budget N", "maximum number of tokens (default: 2000; with --hook: 800)", count),
        take("--agent NAME", "agent id for the audit log and private notes", agent),
        take("--since CURSOR", "show only changes after CURSOR, which an earlier call returned"),
        flag("--hook",
            "run as a client's hook: answer in the client's form within a second, and always exit with 0"),
        take("--session ID", "leave out passages that this session already printed"),
        _CLIENT,
        _EVENT,
        flag("--quiet", "with --hook: print nothing if no server is reachable"),
    ), group="read and search", place=30, hook="lithos.clients.hooks.briefing:run_hook"),
    CliCommand("checkpoint", "save what a session learned as a note on the running server",
        "lithos.clients.commands_sessions:run_checkpoint", (
        take("file FILE", "file with the text; - for stdin", nargs="?"),
        take("--text TEXT", "the text, at most 16,000 characters"),
        take("--session ID", "session whose note the text is added to (default: the agent's note "
                             "of today)"),
        take("--agent NAME", "agent that saves the text (default: CLIENT@HOST)", agent),
        _CLIENT,
        _EVENT,
        flag("--hook",
            "run as a client's hook: save the text, or print a reminder for the agent; without a "
            "server, exit with 0"),
        ),
        "Save a text as a note in checkpoints/. Each session has one note, and a repeated text is saved "
        "only once. Pass the text with --text, in a FILE, or on stdin.",
        group="read and search", place=40, hook="lithos.clients.hooks.checkpoint:run_hook",
    ),
    CliCommand("connect", "connect a client: print its configuration, or write it into the client's file",
        "lithos.clients.connect.command:run_connect", (
        # Without this default, argparse would treat a missing argument as an invalid choice.
        take("client CLIENT", f"one of {', '.join((*CLIENTS, *HOSTED))}", nargs="?",
            choices=(*CLIENTS, *HOSTED), default=None),
        flag("--write", "write the entry into the client's configuration", alone=True),
        flag("--remove", "remove the entry from the client's configuration", alone=True),
        flag("--hooks", "install hooks in the client's configuration, or remove them (--remove)"),
        flag("--list", "list the installed clients and their connections", alone=True),
        take("--scope", "configuration to use: user (default) or project (of this folder)",
            choices=("user", "project")),
        take("--transport",
            "how the client connects (default for --write: stdio; http in a project and for agent-zero)",
            choices=("http", "stdio")),
        flag("--allow-reads",
            "with --write: let the client run the tools that only read without a question"),
        take("--name NAME", "name of the entry (default: lithos)"),
        take("--file PATH", "path of the client's configuration file, if it is not in the usual place", Path),
        take("--agent ID", "agent id for the client (default: CLIENT@HOST of this machine)", agent),
        take("--instructions FILE",
            "write a block for agents to FILE, such as AGENTS.md, or remove it (--remove)"),
        take("--plugin DIR", "write a plugin with server, skill and hooks to DIR (claude-code)", alone=True),
        ),
        "Print the configuration that a client needs, ready to paste. With --write, Lithos adds "
        "it to the client's own configuration file and keeps all other settings. A backup is "
        "kept next to the file, and --remove restores it. A file with comments is not changed.",
        group="serve and connect", place=310, folder="spared",
    ),
    CliCommand("skill", "print the skill (SKILL.md) that teaches an agent to use Lithos",
        "lithos.clients.plugin.writing:run_skill",
        needs_session=False,  # The skill does not depend on the configuration, so no session is opened.
        group="serve and connect", place=320,
    ),
)  # fmt: skip
