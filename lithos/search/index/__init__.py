"""The full-text index, the vector index and the models.

Its own package and later ones use it.
Never here: the meaning of a note.
"""

ROLE = "index"
