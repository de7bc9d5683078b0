"""SQLite databases, their tables and migrations, and the lock of the data directory.

Its own package and later packages import this package.
It must not depend on the meaning of a table.
"""

ROLE = "rows"
