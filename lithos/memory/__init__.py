"""Memory of agents: typed edges between notes, retrieval with evidence, briefings and trust.

The packages above it use this package. It must not use language models.
"""
