"""Errors, times, limits, event names, principals, commands and the registry of checks.

All packages import this package.
It must not use files, clocks, threads or logs.
"""

ROLE = "model"
