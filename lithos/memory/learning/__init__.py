"""The actor that owns the databases of edges and statistics.

Its own package, `imports` and `upkeep` use it.
Never here: ranking.
"""

ROLE = "actor"
