"""The command `connect`, which adds Lithos to the configuration of clients, and removes it again.

Only the package `clients` uses this package. The package must not change files without the user's consent.
"""

ROLE = "commands"
