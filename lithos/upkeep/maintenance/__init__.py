"""Commands of upkeep: backup, export, checks, maintenance.

`lithos.app` alone uses it.
Never here: rules of checks.
"""

ROLE = "commands"
