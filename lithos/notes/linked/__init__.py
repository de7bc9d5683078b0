"""Folders outside the notes folder whose files are notes, and the roots of all notes.

`lithos.notes.files` and packages that link folders use this package.
Never here: the clients that write such folders.
"""

ROLE = "files"
