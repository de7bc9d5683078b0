"""Search services: hybrid search, graph search, similar notes and cache lookups.

The search package and packages in higher layers import this package. Code that changes an index does not
belong here.
"""

ROLE = "service"
