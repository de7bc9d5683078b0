"""Use cases of tasks: lists, the console's board, held claims and impact.

Its own package and later ones use it.
Never here: changes without the coordinator.
"""

ROLE = "service"
