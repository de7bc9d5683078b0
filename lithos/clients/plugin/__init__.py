"""The command that writes the plugin for a client.

Only `clients` imports this package.
Never here: code that opens a vault.
"""

ROLE = "commands"
