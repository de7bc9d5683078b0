"""The actor that owns the databases for edges and statistics.

`memory`, `imports` and `upkeep` import this package.
It must not rank notes.
"""

ROLE = "actor"
