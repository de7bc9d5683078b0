"""History: keep every version of every note, restore versions, undo changes and merge conflict copies.

Packages in higher layers import this package. Code that changes notes without the note writer does not belong
here.
"""
