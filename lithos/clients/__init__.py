"""Support for agent clients: connection, hooks, plugin and session cursors.

Only `app` uses this package.
Never here: code that opens a vault.
"""
