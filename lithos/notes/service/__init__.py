"""Note use cases: reading, listing, writing, merging and moving notes.

This package must not contain rules about writing notes.
"""

ROLE = "service"
