"""Frontmatter as text: nodes and spans of YAML, and edits that keep the user's formatting.

Its own package and later ones use it.
Never here: files, and the meaning of a key.
"""

ROLE = "model"
