"""The sources: readers of folders, exports and databases.

Only its own package uses it.
Never here: changes of notes.
"""

ROLE = "files"
