"""The shell of the command line: options, session, output and failures.

Its own package and later ones use it.
Never here: the work of a command.
"""

ROLE = "commands"
