"""The shell of the command line: options, session, output and failures.

The packages after it in the order of docs/develop.md use it.
Never here: what a command does.
"""

ROLE = "commands"
