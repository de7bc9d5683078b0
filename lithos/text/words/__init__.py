"""Words and letters: folding, stems, names, tags, tokens, frequencies and similarity of texts.

This package and later packages use these modules. The modules must not access files or depend on notes.
"""

ROLE = "model"
