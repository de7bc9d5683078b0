"""A note as values: paths, copies, versions, scopes and entities.

Its own package and later ones use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
