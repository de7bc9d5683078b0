"""One indexer actor per search index, repair, the semantic backend and the graph cache.

The publisher feeds it; searches wait here for what was acknowledged.
Never here: ranking (services/search) or index formats (stores/indexes).
"""
