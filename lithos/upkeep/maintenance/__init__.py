"""Commands for backups, exports, checks and repairs.

Only `upkeep` imports it.
Never here: rules of checks.
"""

ROLE = "commands"
