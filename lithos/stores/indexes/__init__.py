"""Search indexes on disk: full text (tantivy), vectors (usearch), the link graph, the embedder.

The indexing actors change them; searches read them through handles. What they hold can be rebuilt.
Never here: the truth about a note, or ranking.
"""
