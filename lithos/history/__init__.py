"""Every version of every note, and the way back: restoring, undoing, conflict copies.

The packages after it in the order of docs/develop.md use it.
Never here: changes past the writer of notes.
"""
