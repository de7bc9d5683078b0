"""Readers for all kinds of sources: folders, exports and databases.

Only the `imports` package imports this package. It must not change notes.
"""

ROLE = "files"
