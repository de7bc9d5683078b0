"""Kinds of files, and the extraction of text from their bytes.

Only its own package imports this package.
It must not use files, clocks, threads or logs.
"""

ROLE = "model"
