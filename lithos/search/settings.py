"""The settings of search."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from attrs import frozen

from lithos.kernel.configuration.rules import FRACTION, NOT_BLANK, number, setting, whole
from lithos.kernel.configuration.sections import SettingsSection
from lithos.server.settings import ServerConfig

#: Average number of JSON characters of a row in a compact answer, and number of rows that always fit.
ROOM_OF_ROW: Final = 348
LEAST_ROWS: Final = 10
#: The languages that have a stemmer (`text.words.languages.LANGUAGES`), or the language of each note.
Language: TypeAlias = Literal[
    "auto", "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian",
    "italian", "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "tamil",
    "turkish",
]  # fmt: skip


@frozen(kw_only=True)
class SearchConfig:
    """Embedding, chunking and fusion settings."""

    embedding_model: str = setting(
        "builtin",
        "Embedding model of the static tier: `builtin`, a directory, or the Hugging Face name of a "
        "model2vec model.",
        NOT_BLANK,
    )
    semantic_threshold: float | None = setting(
        None,
        "Minimum similarity of a semantic result. null means 0.3, and the model's own minimum in purely "
        "semantic searches and for questions in another language.",
        FRACTION,
    )
    cache_confidence: float | None = setting(
        None,
        "Minimum probability that a note answers the question. `lithos_cache_lookup` returns a "
        "note as a hit only if its probability is at least this. null means 0.79, or 0.74 in the "
        "accurate tier (0.89 with its multilingual model). These values were chosen for at most 5 % "
        "false hits.",
        FRACTION,
    )
    max_results: int = setting(50, "Maximum value of `limit` in a search.", whole(1, 10_000))
    fusion: Literal["blend", "rrf"] = setting(
        "blend",
        "How a hybrid search combines full-text and semantic results: `blend` adds weighted scores, `rrf` "
        "uses reciprocal rank fusion.",
    )
    semantic_weight: float | None = setting(
        None,
        "Weight of the semantic score in `blend`, from 0 to 1. null means 0.2 in the static tier and 0.4 in "
        "the accurate tier (0.5 with its multilingual model).",
        FRACTION,
    )
    tier: Literal["auto", "static", "accurate"] = setting(
        "auto",
        "Embedding vectors that searches use. `auto` selects `accurate` if onnxruntime is installed, "
        "otherwise `static`.",
    )
    accurate_model: Literal["auto", "english", "multilingual"] = setting(
        "auto",
        "Model of the accurate tier. `auto` selects `multilingual` if a tenth of the notes or more are not "
        "English and the distribution `lithos-accurate-multi` is installed, otherwise `english`.",
    )
    accurate_threads: int = setting(
        1, "Number of threads that compute the embedding vectors of the accurate tier.", whole(1, 64)
    )
    lead_weight: float = setting(
        0.5,
        "Extra weight for notes that contain the words of the query near their beginning. It reorders the "
        "60 best results. 0 turns it off.",
        number(0, 100),
    )
    language: Language = setting(
        "auto",
        "Language whose word forms full-text search knows. `auto` detects the language of each note. With "
        "another value, all notes are in that language. A change rebuilds the full-text index.",
    )
    chunk_size: int = setting(
        500,
        "Number of characters up to which consecutive paragraphs are combined into one chunk. A "
        "chunk never exceeds twice this size.",
        whole(1, 100_000),
    )

    @property
    def note_language(self) -> str | None:
        """Return the language of all notes, or None if each note has its own."""
        return None if self.language == "auto" else self.language


def room_of_rows(server: ServerConfig, limit: int) -> int:
    """Return the maximum number of JSON characters of all rows in a compact answer, 0 for no limit."""
    return ROOM_OF_ROW * max(LEAST_ROWS, limit) if server.answers_compactly else 0


SETTINGS: Final = (
    SettingsSection(
        "search",
        SearchConfig,
        place=30,
        retired={
            "search.chunk_max": "a chunk has at most twice the characters of search.chunk_size",
        },
    ),
)
