"""Sections of a Markdown text: their outline and edits, and differences and merges of lines.

Used by this package and by the packages above it. It reads no files and knows nothing about notes.
"""

ROLE = "model"
