"""Declaring, calling and answering tools, and fitting answers into a size limit.

Its own package and later ones use it.
Never here: the work of a tool.
"""

ROLE = "tools"
