"""Backups, probes and the inspection of indexes.

Its own package and those after it use it.
Never here: repairs that nobody asked for.
"""

ROLE = "files"
