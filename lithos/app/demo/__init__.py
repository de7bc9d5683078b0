"""A day of three agents in a vault of its own.

`lithos.app` alone uses it.
Never here: a real vault.
"""

ROLE = "commands"
