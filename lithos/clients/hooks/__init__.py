"""The hooks of clients: briefing and checkpoint.

Only the package `clients` uses this package. Its failures must not stop a client.
"""

ROLE = "commands"
