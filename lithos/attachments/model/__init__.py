"""Kinds of files, and how their text is taken out of their bytes.

Its own package and those after it use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
