"""Finding notes by words, by meaning and by links.

The packages after it in the order of docs/develop.md use it.
Never here: changes of notes.
"""
