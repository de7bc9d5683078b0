"""The hooks for clients: briefing and checkpoint.

Only the package `clients` uses this package.
Never here: failures that stop a client.
"""

ROLE = "commands"
