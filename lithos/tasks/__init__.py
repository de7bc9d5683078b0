"""Tasks that agents share: claims, dependencies, findings and reviews.

`lithos.app` alone may enter.
Never here: files of notes.
"""
