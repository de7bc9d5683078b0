"""Records versions that the history lacks.

Its own package and those after it use it.
Never here: changes of notes.
"""

ROLE = "actor"
