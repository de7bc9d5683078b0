"""The full-text index, the vectors and the models.

Its own package and those after it use it.
Never here: what a note means.
"""

ROLE = "index"
