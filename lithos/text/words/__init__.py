"""Words and letters: folding, stems, names, tags, tokens, how rare a word is, how alike two texts are.

Every package after the kernel uses it.
Never here: files, and notes as such.
"""

ROLE = "model"
