"""Declaring, calling and answering tools, and fitting answers into a size limit.

This package and the packages above it use the declarations. The work of a tool belongs to other packages.
"""

ROLE = "tools"
