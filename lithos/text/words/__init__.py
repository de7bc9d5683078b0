"""Words and letters: folding, stems, names, tags, tokens, frequencies and similarity of texts.

`text` and packages in higher layers import this package. They must not access files or depend on notes.
"""

ROLE = "model"
