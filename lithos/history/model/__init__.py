"""Merging of files and frontmatter, conflict markers and undo plans, as pure values.

This package and `upkeep` use these modules. File access, clocks, threads and logs do not belong here.
"""

ROLE = "model"
