"""The databases `edges.db` and `stats.db`.

`memory`, `imports` and `upkeep` import this package.
It must not contain learning rules.
"""

ROLE = "rows"
