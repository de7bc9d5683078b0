"""`coordination.db`: agents, tasks, claims, findings, the event journal, cursors and the audit log.

The coordinator writes through one connection; readers have another.
Never here: task rules (core/tasks) or delivery of events.
"""
