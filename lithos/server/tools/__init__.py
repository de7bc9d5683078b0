"""Declaring, calling and answering tools, and fitting answers into a size limit.

Importers: the server package and packages above it.
Never here: the work of a tool.
"""

ROLE = "tools"
