"""The catalogue of all notes in memory: paths, tags, titles, links and lineage.

Used by this package and by later packages.
Never here: code that writes files.
"""

ROLE = "actor"
