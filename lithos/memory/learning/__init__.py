"""The owner of the databases of edges and statistics.

Its own package and those after it use it.
Never here: ranking.
"""

ROLE = "actor"
