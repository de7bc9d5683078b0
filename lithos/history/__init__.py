"""Every version of every note: restoring, undoing and merging of conflict copies.

Later packages use it.
Never here: changes without the writer of notes.
"""
