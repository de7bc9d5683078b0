"""The hooks for clients: briefing and checkpoint.

Only the package `clients` uses this package. Failures of hooks must not stop a client.
"""

ROLE = "commands"
