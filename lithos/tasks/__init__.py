"""Tasks that agents share: claims, dependencies, findings and reviews.

The packages after it in the order of docs/develop.md use it.
Never here: files of notes.
"""
