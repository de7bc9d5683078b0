"""History: keep every version of every note, restore versions, undo changes and merge conflict copies.

Later packages may import this package. Do not put code here that changes notes without the note writer.
"""
