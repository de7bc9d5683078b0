"""The command `serve`, and servers that run for a single command.

No other package uses it. It contains no rules or queries.
"""

ROLE = "commands"
