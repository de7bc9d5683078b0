"""Tables and rows of tasks in `coordination.db`.

`tasks` and the packages above it import this package.
It must not contain task rules.
"""

ROLE = "rows"
