"""Readers for each kind of source: folders, exports and databases.

Only its own package uses it.
Never here: changes of notes.
"""

ROLE = "files"
