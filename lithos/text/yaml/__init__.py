"""Frontmatter as text: YAML nodes and their positions, and edits that keep the user's formatting.

This package and later packages use these modules. The modules must not access files or interpret keys.
"""

ROLE = "model"
