"""Pages of memory in the console: graph, receipts, contradictions.

`lithos.app` alone uses it.
Never here: changes past the service.
"""

ROLE = "pages"
