"""Tables and rows for tasks in `coordination.db`.

This package and later ones may import it. It contains no task rules.
"""

ROLE = "rows"
