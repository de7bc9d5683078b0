"""SQLite databases with their tables and migrations, and the lock of the data directory.

Used by this package and by the packages above it. The meaning of a table is defined elsewhere.
"""

ROLE = "rows"
