"""What is known of the best note for a question, as numbers: the input of the decision of a cache look-up.

The server's own features (`lithos.core.learning.match`), so that what is fitted here is what it computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs
from attrs import frozen

from lithos.app import Server
from lithos.core.learning.match import CANDIDATES, Features
from lithos.stores.indexes.fulltext_schema import Filters

#: In the order of the coefficients.
NAMES: Final = tuple(attrs.fields_dict(Features))


@frozen
class Evidence:
    """The candidate (None: nothing was found) and its numbers, by the names above."""

    note: str | None
    features: Mapping[str, float]


async def features_of(server: Server, query: str) -> Evidence:
    """The first note of a hybrid search, and how it stands out."""
    search = server.search
    ranking = await search.hybrid.rank(query, Filters(), CANDIDATES, search.threshold)
    for serial, features in ranking.features.items():
        entry = server.catalogue.at_serial(serial)
        assert entry is not None
        return Evidence(entry.note.id, attrs.asdict(features))
    return Evidence(None, dict.fromkeys(NAMES, 0.0))
