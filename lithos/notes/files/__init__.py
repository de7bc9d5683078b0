"""Note files on disk: reading, replacing and moving them; the manifest.

Used by this package and by later packages.
Never here: rules about writing notes.
"""

ROLE = "files"
