"""Commands for backups, exports, checks and repairs.

Only its own package uses it.
Never here: rules of checks.
"""

ROLE = "commands"
