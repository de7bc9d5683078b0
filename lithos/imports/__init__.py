"""Import of notes from other programs and from files.

Only `app` uses it.
Never here: changes without the writer of notes.
"""
