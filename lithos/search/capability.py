"""The search capability: the indexes, their actors and the queries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.actors.threads import Threads
from lithos.kernel.capability import Capability, NavigationLink, Pages, Store
from lithos.kernel.settings import StorageConfig
from lithos.kernel.state import Gauge, HealthCheck, Observed
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.files import NoteFiles
from lithos.notes.service.ports import SimilarNotes, TextMatches
from lithos.notes.writing.ports import NoteIndex
from lithos.search.embedding.embedder import load_embedder
from lithos.search.embedding.transformer import load_transformer
from lithos.search.embedding.transformer_models import TransformerModel
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.indexing.accurate import AccurateTier
from lithos.search.indexing.accurate_models import AccurateModels
from lithos.search.indexing.indexer import FulltextIndexer, VectorIndexer, Visibility
from lithos.search.indexing.models import Models
from lithos.search.indexing.ports import FulltextPort, VectorPort
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.indexing.vault_languages import VaultLanguages
from lithos.search.opening import open_fulltext
from lithos.search.service.cache import CacheLookup
from lithos.search.service.duplicates import Duplicates
from lithos.search.service.prompts import Prompts
from lithos.search.service.recent_queries import RecentQueries
from lithos.search.service.search import Search
from lithos.search.settings import SearchConfig
from lithos.search.state import (
    count_index,
    look_at_index,
    look_at_model,
    look_at_search,
    measure_index,
    measure_model,
    reach_index,
)
from lithos.search.whole_index import WholeIndex
from lithos.text.chunk import ChunkSizes

#: Number of notes per commit while an index is rebuilt. A commit takes about 20 ms for one note and 200 ms
#: for 1,000 notes.
FULLTEXT_SLICE = 1_000
#: Seconds by which a commit is delayed so that several writes share it. A commit costs more than the rest of
#: a write. A caller that needs its change in the index flushes the index instead of waiting.
FULLTEXT_LINGER = 0.2
FULLTEXT_BATCH = 256


class EmbeddingThread(Threads):
    """The only thread that embeds text with the static model."""

    def __init__(self) -> None:
        super().__init__(1)


def make_opening(fulltext: FulltextIndex) -> Opening:
    """Create the progress report of the server start."""
    return Opening(fulltext.document_count)


def make_sizes(search: SearchConfig) -> ChunkSizes:
    """Create the store of the chunk sizes."""
    return ChunkSizes(search.chunk_size)


def make_semantic(
    search: SearchConfig,
    storage: StorageConfig,
    models: Models,
    sizes: ChunkSizes,
    embedding: EmbeddingThread,
    catalogue: Catalogue,
    files: NoteFiles,
    words: FulltextIndexer,
) -> SemanticBackend:
    """Create the backend of semantic search."""
    directory = storage.data_dir / ".usearch"
    port, accurate = VectorPort(sizes), None
    if search.tier != "static":

        def make(model: TransformerModel) -> AccurateTier:
            load = partial(models.transformer, load_transformer, search.accurate_threads, model)
            return AccurateTier(port, catalogue, files, load, directory / model.name, models.embedding)

        languages = VaultLanguages(catalogue, files, Threads())
        share = languages.share_of_other_languages
        accurate = AccurateModels(port, make, directory, search.tier, search.accurate_model, share)
    # Full-text search gives the first answers of a new index. The model therefore gets only the processor
    # time that full-text indexing leaves.
    port.leaves_a_core = lambda: not words.is_converged
    return SemanticBackend(
        port, embedding, partial(models.static, load_embedder), directory, search.embedding_model, accurate
    )


def make_fulltext_port(fulltext: FulltextIndex, sizes: ChunkSizes, catalogue: Catalogue) -> FulltextPort:
    """Create the port through which the indexer writes to the full-text index."""
    return FulltextPort(fulltext, sizes, catalogue.entities, catalogue.projects.rules)


def make_fulltext_indexer(
    port: FulltextPort, catalogue: Catalogue, files: NoteFiles, fulltext: FulltextIndex
) -> FulltextIndexer:
    """Create the full-text indexer."""
    return FulltextIndexer(
        "fulltext",
        port,
        catalogue,
        files,
        Threads(),
        reading=Threads(),
        repair_slice=FULLTEXT_SLICE,
        batch=FULLTEXT_BATCH,
        linger=FULLTEXT_LINGER,
        on_behind=fulltext.tell_behind,
    )


def make_vector_indexer(
    semantic: SemanticBackend, catalogue: Catalogue, files: NoteFiles, embedding: EmbeddingThread
) -> VectorIndexer:
    """Create the vector indexer."""
    port = semantic.port
    return VectorIndexer(
        "vectors", port, catalogue, files, embedding, reading=Threads(), on_behind=port.tell_behind
    )


def make_indexes(words: FulltextIndexer, meaning: VectorIndexer) -> Sequence[NoteIndex]:
    """Return the indexes that follow changes to notes."""
    return words, meaning


def make_text_matches(search: Search) -> TextMatches:
    """Create the function that filters note lists by a full-text query."""
    return search


def make_similar_notes(duplicates: Duplicates) -> SimilarNotes:
    """Create the search for notes that resemble a newly written note."""
    return duplicates


def make_asked(search: Search) -> RecentQueries:
    """Create the in-memory store of recent queries."""
    return search.asked


SEARCH = Capability(
    name="search",
    makers=(
        make_opening,
        make_sizes,
        EmbeddingThread,
        make_semantic,
        make_fulltext_port,
        make_fulltext_indexer,
        make_vector_indexer,
        Visibility,
        WholeIndex,
        Search,
        make_asked,
        make_indexes,
        make_text_matches,
        Duplicates,
        make_similar_notes,
        CacheLookup,
        Prompts,
    ),
    pages=Pages(
        modules=("lithos.search.pages",), links=(NavigationLink(2, "Search", "/console/search", "s"),)
    ),
    tools=("lithos.search.tools",),
    stores=(Store(60, open_fulltext),),
    health=(
        HealthCheck("search", 3, look_at_search),
        HealthCheck("embedding_model", 4, look_at_model),
        HealthCheck("index", 5, look_at_index),
    ),
    statistics=(reach_index, count_index),
    gauges=(Gauge(30, measure_index), Gauge(60, measure_model)),
    actors=(Observed(2, FulltextIndexer), Observed(3, VectorIndexer)),
)
