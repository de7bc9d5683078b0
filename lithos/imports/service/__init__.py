"""The plan and the run of an import.

Its own package and those after it use it.
Never here: writes past the writer of notes.
"""

ROLE = "service"
