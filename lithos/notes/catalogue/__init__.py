"""The catalogue of all notes in memory: paths, tags, titles, links and lineage.

The notes package and later packages use this package. It must not contain code that writes files.
"""

ROLE = "actor"
