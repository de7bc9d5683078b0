"""Note use cases: read, list, write, merge and move notes.

This package must not contain rules about writing notes.
"""

ROLE = "service"
