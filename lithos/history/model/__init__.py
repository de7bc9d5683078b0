"""Values and pure functions that merge files and frontmatter, write conflict markers and plan an undo.

Only this package and `upkeep` import these modules. Do not use files, clocks, threads or logs here.
"""

ROLE = "model"
