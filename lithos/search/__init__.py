"""Note search: full-text, semantic and link-based.

Packages in higher layers import this package. Code that changes notes does not belong here.
"""
