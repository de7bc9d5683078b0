"""The commands of tokens and logins."""

from __future__ import annotations

from typing import Final

from lithos.server.command.declaring import CliCommand, flag, number, take

#: `kernel.values.principals.TOKEN_RIGHTS`.
RIGHTS = ("metrics", "read", "write", "admin")
#: Days that a token may live.
LONGEST_LIFE = 36_500
days = number(
    "_days",
    float,
    lambda days: 0 < days <= LONGEST_LIFE,
    f"give more than 0 days and at most {LONGEST_LIFE:,}",
)

COMMANDS: Final = (
    CliCommand("token", "create, list and revoke access tokens and their rights",
        "lithos.access.commands_tokens:run_token", chosen="action", parts=(
            CliCommand("create", "make a token and print it, once", takes=(
                take("name NAME", "name of the token: letters, digits and . _ - @"),
                take("--agent ID", "bind the token to this agent; its holder can act as no other"),
                take("--rights", "rights of the token (default: write)", choices=RIGHTS),
                take("--expires DAYS", "lifetime of the token (default: no expiry)", days),
                take("--write GLOB", "patterns of the notes that it may change at once, such as plans/ or "
                    "'**/*.md' (default: all; none with --propose alone)", nargs="+", action="extend"),
                take("--propose GLOB", "patterns of the notes where its changes wait for a person",
                    nargs="+", action="extend"),
                flag("--add", "let the token of this name, which is known already, into the vaults that "
                    "--vault names; no new one is made"),
                ), description="Make a token and print it, once. Of several vaults it is let into those that "
                "--vault names (default: the default vault; '*': all, later ones too), and into no other.",
            ),
            CliCommand("list", "names, rights, agents and ends; never the tokens themselves"),
            CliCommand("revoke", "end a token; a running server ends its streams within 2 seconds", takes=(
                take("name NAME", "its name"),
            )),
            CliCommand("off", "ask for no named token any more, once all are revoked"),
            CliCommand("client", "add remote clients that do not register themselves",
                chosen="client_action", parts=(
                    CliCommand("add", "make one known, and print its client id", takes=(
                        take("name NAME", "name of the client"),
                        take("--redirect URI", "where it is answered; may be repeated", action="append",
                            required=True),
                    )),
                    CliCommand("list", "all that are known, those that registered too"),
                    CliCommand("remove", "forget one", takes=(take("client ID", "its client id"),)),
                ),
            ),
        ),
        group="admin", place=290, takes_several=True, folder="spared",
    ),
    CliCommand("login", "print a link that logs you in to the console of a server at a public address, once",
        "lithos.access.commands_tokens:run_login",
        group="admin", place=300,
    ),
)  # fmt: skip
