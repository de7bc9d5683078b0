"""SQLite databases, their tables and migrations, and the lock of the data directory.

Every package uses it.
Never here: what a table means.
"""

ROLE = "rows"
