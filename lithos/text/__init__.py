"""General text handling: Markdown, words, chunks, snippets, query language and hidden characters.

Packages in higher layers import this package. The package must not access files or depend on notes.
"""

ROLE = "model"
