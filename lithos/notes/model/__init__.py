"""Value types that describe a note: paths, copies, versions, scopes and entities.

The package `notes` and later packages use this package.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
