"""The full-text index, the vector index and the models.

Search and later packages use it.
Never here: the meaning of a note.
"""

ROLE = "index"
