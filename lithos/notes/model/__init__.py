"""The values that describe a note: paths, copies, versions, scopes and entities.

Used by this package and by later packages.
Never here: file access, clocks, threads and logs.
"""

ROLE = "model"
