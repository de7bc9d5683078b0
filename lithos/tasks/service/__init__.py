"""Use cases of tasks: lists, the console board, claims and impact.

`tasks` and packages in higher layers import this package.
It must not change data without the coordinator.
"""

ROLE = "service"
