"""Tables and rows of tasks in `coordination.db`.

Its own package and later ones use it.
Never here: rules of tasks.
"""

ROLE = "rows"
