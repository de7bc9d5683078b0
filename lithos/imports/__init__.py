"""Notes from other programs and from files.

`lithos.app` alone uses it.
Never here: writes past the writer of notes.
"""
