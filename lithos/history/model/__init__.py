"""Merging of files and heads, conflict markers and plans of an undo, as values.

Its own package and `upkeep` use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
