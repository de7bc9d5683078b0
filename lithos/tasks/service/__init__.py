"""Use cases of tasks: lists, the console board, claims and impact.

Its own package and later packages import this package.
It must not change data without the coordinator.
"""

ROLE = "service"
