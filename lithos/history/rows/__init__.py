"""`history.db`: versions as rows and deltas.

Its own package and those after it use it.
Never here: what a version means.
"""

ROLE = "rows"
