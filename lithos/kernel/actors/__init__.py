"""Mailboxes and their supervision, threads, memory, and the progress of a server start.

This package and the packages above it use the actor modules. This package must not interpret messages.
"""

ROLE = "actor"
