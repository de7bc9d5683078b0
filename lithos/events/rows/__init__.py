"""Storage of the journal and its tables in `coordination.db`.

Its own package and later packages use this package. It must not interpret rows of other capabilities.
"""

ROLE = "rows"
