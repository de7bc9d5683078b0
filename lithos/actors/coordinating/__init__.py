"""The coordinator actor, which gives every event its place in one order, and the broadcaster.

Tools reach it through services/tasks; event streams subscribe to the broadcaster.
Never here: SQL (stores/coordination) or HTTP.
"""
