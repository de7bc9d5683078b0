"""Shell of the command line: options, session, output and failures.

This package and the packages above it use the shell. The work of a command belongs to other packages.
"""

ROLE = "commands"
