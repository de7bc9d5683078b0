"""The command that writes the plugin for a client.

Only the package `clients` uses this package. The package must not open a vault itself.
"""

ROLE = "commands"
