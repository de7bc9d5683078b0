"""Journal of all changes, agents, access log, cursors and event streams.

Later packages use this package. It must not interpret events.
"""
