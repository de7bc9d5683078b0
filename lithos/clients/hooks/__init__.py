"""The hooks of clients: briefing and checkpoint.

Only its own package uses it.
Never here: failures that stop a client.
"""

ROLE = "commands"
