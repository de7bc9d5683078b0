"""Programs of agents: their connection, hooks, plugin and session cursors.

Only `app` uses it.
Never here: a vault of its own.
"""
