"""Statistics, salience and remembered questions as values.

Its own package, `imports` and `upkeep` use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
