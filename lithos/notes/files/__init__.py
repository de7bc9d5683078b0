"""Note files on disk: reading, replacing, locking out races, the manifest.

Its own package and those after it use it.
Never here: rules of writing.
"""

ROLE = "files"
