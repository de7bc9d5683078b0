"""Note files on disk: reading, replacing and moving them; the manifest.

Its own package and later ones use it.
Never here: rules of writing.
"""

ROLE = "files"
