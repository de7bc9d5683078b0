"""Knowledge of any text: Markdown, words, chunks, snippets, query language, hidden characters.

Later packages use it.
Never here: files, and knowledge of notes.
"""

ROLE = "model"
