"""What is asked of tasks: lists, the board, impact.

Its own package and those after it use it.
Never here: changes past the coordinator.
"""

ROLE = "service"
