"""Task use cases: lists, the console board, held claims and note impact.

This package and later ones may import it. It makes no changes without the coordinator.
"""

ROLE = "service"
