"""The full-text index, the vector index and the models.

`search` and the packages above it import this package. Code that interprets notes does not belong here.
"""

ROLE = "index"
