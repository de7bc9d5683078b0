"""Commands that start a server.

`lithos.app` alone uses it.
Never here: rules and queries.
"""

ROLE = "commands"
