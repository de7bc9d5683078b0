"""`history.db`: versions as rows and deltas.

Its own package and later ones use it.
Never here: decisions based on versions.
"""

ROLE = "rows"
