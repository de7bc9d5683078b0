"""Search indexes on disk: full text (tantivy), vectors (usearch), the link graph, the embedder.

The indexing actors change them; searches read them through handles. What they hold can be rebuilt.
Never here: the truth about a note, or ranking.
"""

from __future__ import annotations


class IndexFailed(Exception):
    """A search index could not be changed, saved or opened for writing.

    The index stays usable for searches and may be tried again; notes are not affected.
    """
