"""Documentation, and the generators of its reference pages. This package is not part of the wheel."""
