"""Frontmatter as text: YAML nodes and their positions, and edits that keep the user's formatting.

This package and later packages use these modules. File access and the meaning of keys do not belong here.
"""

ROLE = "model"
