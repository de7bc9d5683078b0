"""Mailboxes and their supervision, threads, memory, and how far a start is.

Every package uses it.
Never here: what a message means.
"""

ROLE = "actor"
