"""Sources that are read: folders, exports, databases.

Its own package and those after it use it.
Never here: writes to notes.
"""

ROLE = "files"
