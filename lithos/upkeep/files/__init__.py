"""Backup files, disk probes and read-only index inspection.

Only `upkeep` and `app` use it.
Never here: repairs without the operator's consent.
"""

ROLE = "files"
