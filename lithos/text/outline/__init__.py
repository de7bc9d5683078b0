"""Sections of a Markdown text: outline, section edits, line differences and merging.

`text` and the packages above it import this package. The modules must not access files or depend on notes.
"""

ROLE = "model"
