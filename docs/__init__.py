"""The documentation, and what writes its reference pages from the code. Not part of the wheel."""
