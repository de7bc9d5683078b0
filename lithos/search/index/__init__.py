"""The full-text index and the vector index.

The search package and packages in higher layers import this package. Code that interprets notes does not
belong here.
"""

ROLE = "index"
