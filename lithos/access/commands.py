"""The commands for tokens and logins."""

from __future__ import annotations

from typing import Final

from lithos.server.command.declaring import CliCommand, flag, number, take

#: The same rights as `kernel.values.principals.TOKEN_RIGHTS`.
RIGHTS = ("metrics", "read", "write", "admin")
#: Maximum lifetime of a token in days.
LONGEST_LIFE = 36_500
days = number(
    "_days",
    float,
    lambda days: 0 < days <= LONGEST_LIFE,
    f"the value must be more than 0 and at most {LONGEST_LIFE:,} days",
)

COMMANDS: Final = (
    CliCommand("token", "create, list and revoke access tokens and their rights",
        "lithos.access.commands_tokens:run_token", chosen="action", parts=(
            CliCommand("create", "create a token and print it once", takes=(
                take("name NAME", "name of the token: letters, digits and . _ - @"),
                take("--agent ID", "agent to which the token is bound; its holder cannot use "
                                   "another agent name"),
                take("--rights", "rights of the token (default: write)", choices=RIGHTS),
                take("--expires DAYS", "lifetime of the token in days (default: no expiry)", days),
                take("--write GLOB", "patterns of the notes that the token can change directly, "
                                     "such as plans/ or '**/*.md' (default: all; none with "
                                     "--propose alone)", nargs="+", action="extend"),
                take("--propose GLOB", "patterns of the notes where a person must approve the "
                                       "token's changes",
                    nargs="+", action="extend"),
                flag("--add", "give the existing token of this name access to the vaults in "
                              "--vault instead of creating a token"),
                ), description="Create a token and print it once. With several vaults, the token "
                               "can access only the vaults in --vault (default: the default "
                               "vault; '*': all vaults, including future ones).",
            ),
            CliCommand("list",
                "list names, rights, agents and expiry of tokens, but never the tokens themselves"),
            CliCommand("revoke", "revoke a token; a running server closes the token's streams "
                                 "within 2 seconds",
                takes=(take("name NAME", "name of the token"),)),
            CliCommand("off", "stop requiring tokens, after all named tokens are revoked"),
            CliCommand("client", "add remote clients that do not register on their own",
                chosen="client_action", parts=(
                    CliCommand("add", "add a client and print its client id", takes=(
                        take("name NAME", "name of the client"),
                        take("--redirect URI", "redirect URI of the client; repeat the option for several",
                            action="append", required=True),
                    )),
                    CliCommand("list", "list all clients, including clients that registered on their own"),
                    CliCommand("remove", "remove a client", takes=(
                        take("client ID", "client id of the client"),
                    )),
                ),
            ),
        ),
        group="admin", place=290, takes_several=True, folder="spared",
    ),
    CliCommand("login", "print a link for one login to the console of a server at a public address",
        "lithos.access.commands_tokens:run_login",
        group="admin", place=300,
    ),
)  # fmt: skip
