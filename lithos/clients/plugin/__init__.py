"""The plugin for a client.

`lithos.app` alone uses it.
Never here: a vault of its own.
"""

ROLE = "commands"
