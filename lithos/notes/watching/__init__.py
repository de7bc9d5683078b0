"""What other programs do to files: listening, settling, the guard of deletions.

Its own package and those after it use it.
Never here: writes to notes.
"""

ROLE = "actor"
