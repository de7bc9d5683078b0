"""SQLite databases with their tables and migrations, and the lock of the data directory.

This package and the packages above it use the database modules. This package must not depend on the meaning
of a table.
"""

ROLE = "rows"
