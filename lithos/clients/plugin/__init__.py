"""The command that writes the plugin for a client.

Only the package `clients` uses this package.
Never here: code that opens a vault.
"""

ROLE = "commands"
