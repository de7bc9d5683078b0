"""Use cases of the history: versions, restoring, undoing, conflict copies and retention.

Its own package and later ones use it.
Never here: changes without the writer of notes.
"""

ROLE = "service"
