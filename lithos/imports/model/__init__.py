"""Formats of other programs, as pure values.

Only its own package imports this package.
It must not use files, clocks, threads or logs.
"""

ROLE = "model"
