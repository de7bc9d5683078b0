"""Shell of the command line: options, session, output and failures.

Importers: the server package and packages above it.
Never here: the work of a command.
"""

ROLE = "commands"
