"""Tasks, their commands and their graph as values.

`tasks` and packages in higher layers import this package.
It must not use files, clocks, threads or logs.
"""

ROLE = "model"
