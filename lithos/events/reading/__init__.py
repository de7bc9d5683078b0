"""What is asked of the journal: agents, audit, cursors, retention.

Its own package and those after it use it.
Never here: changes past the coordinator.
"""

ROLE = "service"
