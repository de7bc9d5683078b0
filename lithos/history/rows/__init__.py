"""The database `history.db`: versions as rows and deltas.

This package and later packages use the database. Decisions based on versions do not belong here.
"""

ROLE = "rows"
