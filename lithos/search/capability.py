"""Search as a capability: the indexes, the actors that keep them, and the queries."""

from __future__ import annotations

from functools import partial

from lithos.actors.blocking import Threads
from lithos.actors.indexing.accurate import ACCURATE, AccurateTier
from lithos.actors.indexing.indexer import FulltextIndexer, VectorIndexer, Visibility
from lithos.actors.indexing.models import Models
from lithos.actors.indexing.ports import ChunkSizes, FulltextPort, VectorPort
from lithos.actors.indexing.semantic import SemanticBackend
from lithos.catalogue.catalogue import Catalogue
from lithos.kernel.capability import Capability
from lithos.kernel.settings import StorageConfig
from lithos.search.settings import SearchConfig
from lithos.services.notes.edges import Edges
from lithos.services.search.asked import Asked
from lithos.services.search.duplicates import Duplicates
from lithos.services.search.neighbourhood import Neighbourhoods
from lithos.services.search.search import Search
from lithos.stores.indexes.embedder import load_embedder
from lithos.stores.indexes.fulltext import FulltextIndex
from lithos.stores.indexes.transformer import load_transformer
from lithos.stores.notes.files import NoteFiles

#: A commit takes some 20 ms for one note and 200 ms for so many, so that a rebuild wants few of them.
FULLTEXT_SLICE = 1_000
#: A commit costs more than everything else about a write, so that many writes should share one. Nobody
#: waits that long: whoever needs a change in the index hurries it.
FULLTEXT_LINGER = 0.2
FULLTEXT_BATCH = 256


class EmbeddingThread(Threads):
    """The one thread that embeds with the static model."""

    def __init__(self) -> None:
        super().__init__(1)


def make_sizes(search: SearchConfig) -> ChunkSizes:
    """Make the sizes of chunks."""
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
    """Make the backend of search by meaning."""
    directory = storage.data_dir / ".usearch"
    port, accurate = VectorPort(sizes), None
    if search.tier != "static":
        load = partial(models.transformer, load_transformer, search.accurate_threads)
        accurate = AccurateTier(
            port, catalogue, files, load, directory / ACCURATE, search.tier, models.embedding
        )
    # The words of a first index are everybody's first answer: the model takes what they leave.
    port.leaves_a_core = lambda: not words.is_converged
    return SemanticBackend(
        port, embedding, partial(models.static, load_embedder), directory, search.embedding_model, accurate
    )


def make_fulltext_port(fulltext: FulltextIndex, sizes: ChunkSizes, catalogue: Catalogue) -> FulltextPort:
    """Make the indexer's view of the full-text index."""
    return FulltextPort(fulltext, sizes, catalogue.entities)


def make_fulltext_indexer(
    port: FulltextPort, catalogue: Catalogue, files: NoteFiles, fulltext: FulltextIndex
) -> FulltextIndexer:
    """Make the indexer of words."""
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
    """Make the indexer of meaning."""
    port = semantic.port
    return VectorIndexer(
        "vectors", port, catalogue, files, embedding, reading=Threads(), on_behind=port.tell_behind
    )


def make_asked(search: Search) -> Asked:
    """Make the memory of what was asked lately."""
    return search.asked


def make_neighbourhoods(catalogue: Catalogue, edges: Edges, search: Search) -> Neighbourhoods:
    """Make what draws the links around a note."""
    return Neighbourhoods(catalogue, edges, search.centrality)


SEARCH = Capability(
    name="search",
    makers=(
        make_sizes,
        EmbeddingThread,
        make_semantic,
        make_fulltext_port,
        make_fulltext_indexer,
        make_vector_indexer,
        Visibility,
        Search,
        make_asked,
        Duplicates,
        make_neighbourhoods,
    ),
)
