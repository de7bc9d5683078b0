"""Value types that describe a note: paths, copies, versions, scopes and entities.

This package must not use files, clocks, threads or logs.
"""

ROLE = "model"
