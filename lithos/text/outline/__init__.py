"""The sections of a Markdown text: outline, edits, differences and merging of lines.

Every package after the kernel uses it.
Never here: files, and notes as such.
"""

ROLE = "model"
