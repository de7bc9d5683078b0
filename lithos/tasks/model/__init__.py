"""Tasks, task commands and the task graph as values.

This package and later ones may import it. It never uses files, clocks, threads or logs.
"""

ROLE = "model"
