"""The option `connect --hooks`, which adds hooks to the files of clients, and removes them again.

Only `clients` imports this package.
Never here: changes to hooks of other programs.
"""

ROLE = "commands"
