"""Errors, times, limits, names of events, who acts, commands and the registry of checks.

Every package uses it.
Never here: files, clocks, threads and logs.
"""

ROLE = "model"
