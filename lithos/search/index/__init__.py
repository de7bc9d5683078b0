"""The full-text index, the vector index and the models.

The search package and packages in higher layers import this package. Code that interprets notes does not
belong here.
"""

ROLE = "index"
