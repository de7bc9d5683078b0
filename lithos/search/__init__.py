"""Note search: full-text, semantic and link-based.

Later packages use it.
Never here: changes to notes.
"""
