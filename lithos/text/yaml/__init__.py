"""Frontmatter as text: YAML nodes and their positions, and edits that keep the user's formatting.

`text` and the packages above it import this package. The modules must not access files or interpret keys.
"""

ROLE = "model"
