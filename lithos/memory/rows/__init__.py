"""`edges.db` and `stats.db`.

Its own package, `imports` and `upkeep` use it.
Never here: rules of learning.
"""

ROLE = "rows"
