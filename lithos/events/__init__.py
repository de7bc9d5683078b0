"""Journal of all changes, agents, access log, cursors and event streams.

The packages above it import this package. The package must not interpret events.
"""
