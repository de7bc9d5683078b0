"""Text analysis: tokens, the query language, chunks, snippets, entity extraction.

Indexes, searches and the enrich worker use it.
Never here: an index library, or anything that keeps state.
"""
