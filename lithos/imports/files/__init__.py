"""Readers for each kind of source: folders, exports and databases.

Only its own package imports this package.
It must not change notes.
"""

ROLE = "files"
