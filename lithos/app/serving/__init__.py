"""The command `serve`, and servers that run only for one command.

Only the package `app` imports this package. The package must not contain rules or queries.
"""

ROLE = "commands"
