"""History services: versions, restore, undo, conflict copies and retention.

`history` and the packages above it import this package. Code that changes notes without the note writer
does not
belong here.
"""

ROLE = "service"
