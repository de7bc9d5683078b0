"""Errors, times, limits, names of events, principals, commands and the registry of checks.

All packages use it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
