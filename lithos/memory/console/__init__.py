"""Console pages of memory: graph, receipts and contradictions.

Only `memory` imports this package.
It must not change data without the service.
"""

ROLE = "pages"
