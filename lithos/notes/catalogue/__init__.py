"""The catalogue of all notes in memory: paths, tags, titles, links and lineage.

Its own package and later ones use it.
Never here: writing of files.
"""

ROLE = "actor"
