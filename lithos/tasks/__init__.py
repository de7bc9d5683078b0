"""Tasks that agents share: claims, dependencies, findings and reviews.

Later packages use it.
Never here: files of notes.
"""
