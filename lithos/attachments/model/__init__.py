"""Kinds of files, and how text is extracted from their bytes.

Only its own package uses it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
