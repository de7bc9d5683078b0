"""Access to `coordination.db`: the journal and its tables.

Its own package and later ones use it.
Never here: the meaning of rows of other capabilities.
"""

ROLE = "rows"
