"""SQLite databases, their tables and migrations, and the lock of the data directory.

Its own package and later ones use it.
Never here: the meaning of a table.
"""

ROLE = "rows"
