"""The command `connect`, which adds Lithos to the configuration of clients, and removes it again.

Only `clients` imports this package.
Never here: changes to files without the user's consent.
"""

ROLE = "commands"
