"""The demo: a day of several agents in a temporary vault.

Only its own package uses it.
Never here: changes of the user's vault.
"""

ROLE = "commands"
