"""Journal of all changes, agents, access log, cursors and event streams.

Later packages use this package. The package must not interpret events.
"""
