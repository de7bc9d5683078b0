"""Frontmatter as text: YAML nodes and their positions, and edits that keep the user's formatting.

`text` and packages in higher layers import this package. The modules must not access files or interpret keys.
"""

ROLE = "model"
