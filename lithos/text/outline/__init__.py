"""Sections of a Markdown text: outline, section edits, line differences and merging.

This package and later packages use these modules. The modules must not access files or depend on notes.
"""

ROLE = "model"
