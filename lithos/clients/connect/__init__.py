"""The command `connect`, which writes the configuration of clients and removes it.

Only its own package uses it.
Never here: changes without the user's consent.
"""

ROLE = "commands"
