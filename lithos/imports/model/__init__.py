"""Formats of other programs, as pure values.

Only its own package uses it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
