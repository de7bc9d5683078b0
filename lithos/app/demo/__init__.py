"""Demo that plays a day of several agents in a temporary vault.

No other package uses it. It never changes the user's vault.
"""

ROLE = "commands"
