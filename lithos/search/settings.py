"""The settings of search."""

from __future__ import annotations

from typing import Final, Literal

from attrs import frozen

from lithos.kernel.configuration.rules import FRACTION, NOT_BLANK, number, setting, whole
from lithos.kernel.configuration.sections import SettingsSection
from lithos.server.settings import ServerConfig

#: Average characters of JSON of a row of a compact search, and the rows that always fit.
ROOM_OF_ROW: Final = 348
LEAST_ROWS: Final = 10


@frozen(kw_only=True)
class SearchConfig:
    """Embedding, chunking and fusion."""

    embedding_model: str = setting(
        "builtin", "`builtin`, a directory, or the Hugging Face name of a model2vec model.", NOT_BLANK
    )
    semantic_threshold: float | None = setting(
        None,
        "Smallest similarity that counts; null: 0.3 in hybrid and graph searches and retrieval, and in "
        "semantic searches that of the model.",
        FRACTION,
    )
    cache_confidence: float | None = setting(
        None,
        "Least probability that makes a note a cached answer; null: 0.79, in the accurate tier 0.74, set for "
        "at most 5 % of false hits.",
        FRACTION,
    )
    max_results: int = setting(50, "Upper bound of `limit` in a search.", whole(1, 10_000))
    fusion: Literal["blend", "rrf"] = setting("blend", "How hybrid search unites its two lists.")
    semantic_weight: float | None = setting(
        None,
        "Share of the semantic score in `blend`; unset, 0.2 in the static tier and 0.4 in the accurate one.",
        FRACTION,
    )
    tier: Literal["auto", "static", "accurate"] = setting(
        "auto", "Which vectors searches use; `auto` is accurate where onnxruntime is installed."
    )
    accurate_threads: int = setting(
        1, "Threads that a text of the accurate tier is embedded with.", whole(1, 64)
    )
    lead_weight: float = setting(
        0.5,
        "Weight of how early a note has the words of the query, among the 60 best; 0: none.",
        number(0, 100),
    )
    chunk_size: int = setting(
        500,
        "Characters up to which paragraphs make one chunk; no chunk exceeds twice as many.",
        whole(1, 100_000),
    )


def room_of_rows(server: ServerConfig, limit: int) -> int:
    """Characters of JSON of the rows of a compact search; 0: no limit."""
    return ROOM_OF_ROW * max(LEAST_ROWS, limit) if server.answers_compactly else 0


SETTINGS: Final = (
    SettingsSection(
        "search",
        SearchConfig,
        place=30,
        retired={
            "search.chunk_max": "no chunk has more than twice the characters of search.chunk_size",
        },
    ),
)
