"""Search services: hybrid search, graph search, similar notes and cache lookups.

`search` and the packages above it import this package. Code that changes an index does not belong here.
"""

ROLE = "service"
