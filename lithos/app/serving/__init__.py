"""The command `serve`, and servers that run for one command.

Only its own package imports this package.
It must not contain rules or queries.
"""

ROLE = "commands"
