"""Console pages of memory: graph, receipts and contradictions.

Only its own package uses it.
Never here: changes without the service.
"""

ROLE = "pages"
