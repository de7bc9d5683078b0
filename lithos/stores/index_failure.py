"""The one failure the search indexes share."""

from __future__ import annotations


class IndexFailed(Exception):
    """A search index could not be changed, saved or opened for writing.

    The index stays usable for searches and may be tried again; notes are not affected.
    """
