"""A note as text: reading, writing and healing its file.

Its own package and those after it use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
