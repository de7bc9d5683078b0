"""Merging and marking of copies and heads, and what an undo would do.

Its own package and those after it use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
