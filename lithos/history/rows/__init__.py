"""`history.db`: versions as rows and deltas.

Its own package and later ones use it.
Never here: the meaning of a version.
"""

ROLE = "rows"
