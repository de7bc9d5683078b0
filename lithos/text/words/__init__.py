"""Words and letters: folding, stems, names, tags, tokens, frequencies and likeness of texts.

Its own package and later ones use it.
Never here: files, and knowledge of notes.
"""

ROLE = "model"
