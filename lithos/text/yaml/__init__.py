"""Frontmatter as text: nodes and spans of YAML, and edits that keep what a person wrote.

Every package after the kernel uses it.
Never here: files, and what a key means.
"""

ROLE = "model"
