"""The writer actor and its publisher: decide, write durably, enter in the catalogue, announce.

Services send write requests; the watcher sends what other programs did.
Never here: how bytes reach the disk (stores/notes).
"""
