"""History: keep every version of every note, restore versions, undo changes and merge conflict copies.

Later packages use it.
Never here: changes without the writer of notes.
"""
