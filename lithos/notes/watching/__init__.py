"""The watcher of changes by other programs, with its guard of deletions.

Its own package and later ones use it.
Never here: writing of notes.
"""

ROLE = "actor"
