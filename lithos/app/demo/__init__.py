"""The demo: a scripted day of several agents in a temporary vault.

Only the package `app` imports this package. The demo must not change the user's vault.
"""

ROLE = "commands"
