"""The database `history.db`: versions as rows and deltas.

`history` and the packages above it import this package. Decisions based on versions do not belong here.
"""

ROLE = "rows"
