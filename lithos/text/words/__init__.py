"""Words and letters: folding, stems, names, tags, tokens, frequencies and similarity of texts.

This package and later packages use these modules. File access and knowledge of notes do not belong here.
"""

ROLE = "model"
