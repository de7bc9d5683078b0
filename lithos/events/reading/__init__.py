"""Journal services: agents, event streams, known calls and retention.

Its own package and later ones use it.
Never here: changes without the coordinator.
"""

ROLE = "service"
