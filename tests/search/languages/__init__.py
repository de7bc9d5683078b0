"""Notes and questions in twelve languages, and how often a search finds the right note."""
