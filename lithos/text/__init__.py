"""Knowledge of any text: Markdown, words, chunks, snippets, query language and hidden characters.

Packages above it use this one. It reads no files and knows nothing about notes.
"""

ROLE = "model"
