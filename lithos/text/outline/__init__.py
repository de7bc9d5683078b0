"""The sections of a Markdown text: outline, edits, differences and merging of lines.

This package and later packages use these modules. File access and knowledge of notes do not belong here.
"""

ROLE = "model"
