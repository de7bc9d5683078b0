"""Sections of a Markdown text: outline, section edits, line differences and merging.

`text` and packages in higher layers import this package. They must not access files or depend on notes.
"""

ROLE = "model"
