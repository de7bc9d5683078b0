"""Search: full text, semantic, graph, hybrid (fused); and the candidates of a cache lookup.

The search tools, retrieval and the command line call it.
Never here: index formats (stores/indexes) or formulas (core/learning/ranking).
"""
