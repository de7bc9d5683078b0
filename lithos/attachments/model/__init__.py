"""Kinds of files, and the extraction of text from their bytes.

Only its own package uses it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
