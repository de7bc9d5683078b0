"""General text handling: Markdown, words, chunks, snippets, query language and hidden characters.

Later packages use this package. File access and knowledge of notes do not belong here.
"""

ROLE = "model"
