"""Mailboxes and their supervision, threads, memory, and the progress of a start.

Its own package and later packages import this package.
It must not interpret messages.
"""

ROLE = "actor"
