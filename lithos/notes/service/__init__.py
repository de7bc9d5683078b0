"""Note use cases: reading, listing, writing, merging and moving.

Used by this package and by later packages.
Never here: rules about writing notes.
"""

ROLE = "service"
