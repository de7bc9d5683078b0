"""Backups, probes of disks and the inspection of indexes.

Only its own package and `app` use it.
Never here: repairs without the operator's consent.
"""

ROLE = "files"
