"""Note use cases: reading, listing, writing, merging and moving notes.

The package `notes` and later packages use this package.
Never here: rules about writing notes.
"""

ROLE = "service"
