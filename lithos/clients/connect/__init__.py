"""Writes the configuration of clients, and takes it back.

`lithos.app` alone uses it.
Never here: changes that nobody agreed to.
"""

ROLE = "commands"
