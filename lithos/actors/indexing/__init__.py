"""One indexer actor per search index, repair and the semantic backend.

The publisher feeds it; searches wait here for what was acknowledged.
Never here: ranking (services/search) or index formats (stores/indexes).
"""
