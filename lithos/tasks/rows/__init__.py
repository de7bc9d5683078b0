"""Tables and rows of tasks in `coordination.db`.

Its own package and later packages import this package.
It must not contain task rules.
"""

ROLE = "rows"
