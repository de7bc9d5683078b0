"""`edges.db` and `stats.db`.

Its own package and those after it use it.
Never here: what is learned.
"""

ROLE = "rows"
