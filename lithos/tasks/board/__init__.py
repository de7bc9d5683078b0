"""The board, which carries out commands on tasks in the coordinator's commit.

Only its own package uses it.
Never here: commits of its own.
"""

ROLE = "actor"
