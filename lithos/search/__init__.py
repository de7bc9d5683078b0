"""Note search: full-text, semantic and link-based.

The packages above it import this package. Code that changes notes does not belong here.
"""
