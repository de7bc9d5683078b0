"""Tasks, their commands and their graph as values.

Its own package and later packages import this package.
It must not use files, clocks, threads or logs.
"""

ROLE = "model"
