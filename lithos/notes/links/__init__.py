"""Links in texts, properties and canvases, and what they mean.

Its own package and those after it use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
