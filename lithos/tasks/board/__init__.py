"""Carries out the commands of tasks in the commit of the coordinator.

Its own package and those after it use it.
Never here: commits of its own.
"""

ROLE = "actor"
