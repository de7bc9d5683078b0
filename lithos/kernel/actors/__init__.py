"""Mailboxes and their supervision, threads, memory, and the progress of a start.

Its own package and later ones use it.
Never here: the meaning of a message.
"""

ROLE = "actor"
