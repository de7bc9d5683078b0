"""Documentation and the generators of its reference pages. The wheel does not contain this package."""
