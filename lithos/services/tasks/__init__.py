"""Tasks, claims, agents, the audit log, durable cursors and event streams for callers.

Task tools, HTTP endpoints and the command line call it.
Never here: task rules (core/tasks) or frames (front/events).
"""
