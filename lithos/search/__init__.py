"""Search of notes: full-text, semantic and by links.

Later packages use it.
Never here: changes of notes.
"""
