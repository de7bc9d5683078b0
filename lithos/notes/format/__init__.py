"""A note as text: reading, rendering and healing.

Its own package and later ones use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
