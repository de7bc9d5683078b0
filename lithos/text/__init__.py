"""What is known of any text: Markdown, words, chunks, snippets, query language, hidden characters.

Every package after the kernel uses it.
Never here: files, and notes as such.
"""

ROLE = "model"
