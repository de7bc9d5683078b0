"""Errors, times, limits, event names, principals, commands and the registry of checks.

All packages may use these values. This package uses no files, clocks, threads or logs.
"""

ROLE = "model"
