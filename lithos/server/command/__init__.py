"""Shared parts of the command line: options, session, output and failures.

Only the server package and packages in higher layers import this package. Never here: the work of a command.
"""

ROLE = "commands"
