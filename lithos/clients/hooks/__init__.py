"""Hooks of clients: briefing and checkpoint.

`lithos.app` alone uses it.
Never here: failures that stop a client.
"""

ROLE = "commands"
