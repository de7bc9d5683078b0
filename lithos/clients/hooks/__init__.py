"""The hooks for clients: briefing and checkpoint.

Only `clients` imports this package.
Never here: failures that stop a client.
"""

ROLE = "commands"
