"""History: keep every version of every note, restore versions, undo changes and merge conflict copies.

Packages in higher layers import this package. It must not change notes without
the note writer.
"""
