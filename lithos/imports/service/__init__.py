"""The plan and the run of an import.

Only its own package uses it.
Never here: changes without the writer of notes.
"""

ROLE = "service"
