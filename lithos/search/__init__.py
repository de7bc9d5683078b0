"""Note search: full-text, semantic and link-based.

Later packages use this package. Code that changes notes does not belong here.
"""
