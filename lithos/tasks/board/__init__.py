"""The task board, which runs task commands in the coordinator's commit.

Only `tasks` imports this package.
It must not commit on its own.
"""

ROLE = "actor"
