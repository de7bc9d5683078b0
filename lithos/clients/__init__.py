"""Support for agent clients: connection, hooks, plugin and session cursors.

Only `app` uses this package. The package must not open a vault itself.
"""
