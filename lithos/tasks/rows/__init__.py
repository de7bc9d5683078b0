"""Tables and rows of tasks in `coordination.db`.

`tasks` and packages in higher layers import this package.
It must not contain task rules.
"""

ROLE = "rows"
