"""All notes in memory: by path, tag, title and link; lineage and scan.

Its own package and those after it use it.
Never here: writes to files.
"""

ROLE = "actor"
