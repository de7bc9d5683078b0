"""Commands of upkeep: backup, export, checks and repairs.

Only its own package uses it.
Never here: rules of checks.
"""

ROLE = "commands"
