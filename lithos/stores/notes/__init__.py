"""Note files on disk: listing, reading, durable replacing and removing, and what was displaced.

The writer, the watcher and the start scan work through it, in worker threads.
Never here: what a note means (core/notes) or the catalogue.
"""
