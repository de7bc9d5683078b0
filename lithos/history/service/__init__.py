"""History services: versions, restore, undo, conflict copies and retention.

This package and the packages in higher layers use the history services. Code that changes notes without the
note writer does not belong here.
"""

ROLE = "service"
