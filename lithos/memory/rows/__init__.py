"""The databases `edges.db` and `stats.db`.

Its own package, `imports` and `upkeep` import this package.
It must not contain learning rules.
"""

ROLE = "rows"
