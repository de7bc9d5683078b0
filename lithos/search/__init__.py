"""Finding notes by words, by meaning and by links.

`lithos.app` alone may enter.
Never here: changes of notes.
"""
