"""Journal services: agents, event streams, known calls and retention.

`lithos.events` and later packages use this package. The package must not change rows without the coordinator.
"""

ROLE = "service"
