"""Note files on disk: reading, replacing and moving files, and the manifest.

The notes package and later packages use this package. It must not contain rules about writing notes.
"""

ROLE = "files"
