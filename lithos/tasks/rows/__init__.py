"""Rows of tasks in `coordination.db`.

Its own package and those after it use it.
Never here: rules of tasks.
"""

ROLE = "rows"
