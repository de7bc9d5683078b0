"""The command `serve`, and servers that run for one command.

Only its own package uses it.
Never here: rules and queries.
"""

ROLE = "commands"
