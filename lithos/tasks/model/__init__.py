"""Tasks, their commands and their graph as values.

Its own package and later ones use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
