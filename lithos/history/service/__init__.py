"""What is asked of the history: versions, restoring, undoing, conflict copies.

Its own package and those after it use it.
Never here: changes past the writer of notes.
"""

ROLE = "service"
