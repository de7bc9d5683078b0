"""Statistics, salience and remembered questions as values.

`memory`, `imports` and `upkeep` import this package.
It must not use files, clocks, threads or logs.
"""

ROLE = "model"
