"""Words and letters: folding, stems, names, tags, tokens, frequencies and similarity of texts.

`text` and the packages above it import this package. The modules must not access files or depend on notes.
"""

ROLE = "model"
