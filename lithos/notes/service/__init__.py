"""Note use cases: read, list, write, merge and move notes.

The package `notes` and later packages use this package.
Never here: rules about writing notes.
"""

ROLE = "service"
