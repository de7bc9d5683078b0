"""Mailboxes, actor supervision, worker threads, memory tuning and start progress.

Used by this package and by the packages above it. The meaning of messages is defined elsewhere.
"""

ROLE = "actor"
