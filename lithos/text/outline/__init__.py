"""The sections of a Markdown text: outline, edits, differences and merging of lines.

Its own package and later ones use it.
Never here: files, and knowledge of notes.
"""

ROLE = "model"
