"""Statistics, salience and remembered questions as values.

Its own package and those after it use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
