"""The demo: a day of several agents in a temporary vault.

Only its own package imports this package.
It must not change the user's vault.
"""

ROLE = "commands"
