"""The database `history.db`, which stores versions as rows and deltas.

The history package and packages in higher layers use the database. Decisions based on versions do not belong
here.
"""

ROLE = "rows"
