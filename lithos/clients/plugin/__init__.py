"""The command that writes the plugin for a client.

Only its own package uses it.
Never here: a vault of its own.
"""

ROLE = "commands"
