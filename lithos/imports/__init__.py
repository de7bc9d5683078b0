"""Notes from other programs and from files.

`lithos.app` alone may enter.
Never here: writes past the writer of notes.
"""
