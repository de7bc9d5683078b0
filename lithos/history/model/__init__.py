"""Merging of files and frontmatter, conflict markers, and undo plans. The modules have no side effects.

The history package and `upkeep` import these modules. File access, clocks, threads and logs do not belong
here.
"""

ROLE = "model"
