"""Journal services: agents, event streams, known calls and retention.

Its own package and later packages use this package. It must not change rows without the coordinator.
"""

ROLE = "service"
