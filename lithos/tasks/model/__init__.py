"""What a task is, its commands and the graph of tasks.

Its own package and those after it use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
