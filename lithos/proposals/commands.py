"""The `lithos proposals` command."""

from __future__ import annotations

from typing import Final

from lithos.server.command.declaring import CliCommand, flag, take

#: A copy of `proposals.model.STATUSES`, because that module takes long to import.
#: `tests/proposals/test_commands.py` checks that both are equal.
STATUSES = ("pending", "approved", "rejected", "expired", "withdrawn")

COMMANDS: Final = (
    CliCommand("proposals", "list, show, approve and reject proposals of agents",
        "lithos.proposals.commands_proposals:run_proposals", (
        take("action", "list (default), show, approve or reject", nargs="?"),
        take("ids ID", "ids of proposals", nargs="*"),
        take("--status", "list proposals with this status (default: pending)", choices=STATUSES),
        take("--agent NAME", "list only proposals of this agent"),
        take("--reason TEXT", "reason for the rejection, which the agent receives"),
        take("--seal TEXT", "approve only if the proposal still has this seal"),
        flag("--yes", "approve without asking"),
        take("--by NAME", "name of the person who decides (default: your user name)"),
        ),
        "Without an action, pending proposals are listed. show prints the changes, with "
        "invisible characters by name; approve prints the same and asks for confirmation. Exit 1 "
        "if a proposal stayed undecided.",
        group="history", place=130,
    ),
)  # fmt: skip
