"""Tasks, their commands and their graph as values.

`tasks` and the packages above it import this package.
It must not use files, clocks, threads or logs.
"""

ROLE = "model"
