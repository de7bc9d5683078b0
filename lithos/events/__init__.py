"""Journal of all changes, agents, access log, cursors and event streams.

Packages in higher layers import this package. The package must not interpret events.
"""
