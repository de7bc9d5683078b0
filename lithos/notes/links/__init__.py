"""Links in texts, properties and canvases.

Its own package and later ones use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
