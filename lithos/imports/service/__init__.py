"""Planning and running of an import.

Only its own package uses it.
Never here: changes without the writer of notes.
"""

ROLE = "service"
