"""Static embeddings: a model2vec model turns text into L2-normalised vectors without a tensor runtime.

The model files are located first (built-in, a directory, or the Hugging Face cache). The hash of the files
identifies the model.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np
import outcome
from attrs import frozen
from numpy.typing import NDArray

from lithos.search.embedding.builtin_model import (
    BUILTIN,
    FORMER,
    FORMER_SHA256,
    BuiltinModel,
    find_builtin,
    read_builtin,
)
from lithos.search.embedding.tokenizer import TOKEN, RunTokens, splits_at_runs

if TYPE_CHECKING:
    from model2vec import StaticModel

T = TypeVar("T")

_ADVICE: Final = (
    "Set search.embedding_model to 'builtin', to the directory of a model2vec model, or to the "
    "name of a reachable Hugging Face model."
)


class EmbedderUnavailable(Exception):
    """The error raised if the embedding model cannot be loaded.

    The message has the reason and the next step, `reason` only the reason.
    """

    def __init__(self, name: str, cause: str) -> None:
        first_line = next(iter(cause.strip().splitlines()), "") or "no further detail"
        self.reason = first_line.rstrip(".")
        super().__init__(f"The embedding model {name!r} cannot be loaded: {self.reason}. {_ADVICE}")


@frozen
class ModelFiles:
    """The folder and the files of a model2vec model on disk."""

    folder: Path
    paths: tuple[Path, ...]

    def sha256(self) -> str:
        """Return one hash over the names, sizes and bytes of the model's files."""
        total = hashlib.sha256()
        for path in sorted(self.paths):
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            total.update(f"{path.relative_to(self.folder).as_posix()}\0{digest}\n".encode())
        return total.hexdigest()


def locate_model(name: str) -> ModelFiles:
    """Locate the files of model `name`. The name is 'builtin', a directory, or a Hugging Face name.

    The network is used only for a Hugging Face name that is not cached yet. Raises `EmbedderUnavailable` for
    a directory without a model, and any error of the hub client.
    """
    if not name.strip():
        raise EmbedderUnavailable(name, "the name is blank")
    if name == BUILTIN:
        return ModelFiles(*find_builtin())
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _require_model(name, folder)
    if name.startswith(("/", ".", "~")):
        raise EmbedderUnavailable(name, f"the directory {str(folder)!r} does not exist")
    return _find_cached(name) or _require_model(name, _download(name))


def is_at_hand(name: str) -> bool:
    """Return whether model `name` needs no download. A local model may still be broken or missing."""
    is_remote = name != BUILTIN and not Path(name).expanduser().is_dir()
    return not is_remote or name.startswith(("/", ".", "~")) or _find_cached(name) is not None


def _find_model(folder: Path) -> ModelFiles | None:
    from model2vec.persistence.datamodels import FOLDER_LAYOUTS  # noqa: PLC0415 - slow to import

    for layout in FOLDER_LAYOUTS:
        placed = layout.with_parent(folder)
        if placed.is_valid():
            return ModelFiles(folder, (placed.config, placed.embeddings, placed.tokenizer))
    return None


def _require_model(name: str, folder: Path) -> ModelFiles:
    found = _find_model(folder)
    if found is None:
        raise EmbedderUnavailable(
            name, f"{folder} has no model2vec files (config.json, model.safetensors, tokenizer.json)"
        )
    return found


def _find_cached(name: str) -> ModelFiles | None:
    from model2vec.persistence.hf import maybe_get_cached_model_path  # noqa: PLC0415 - slow to import

    folder = maybe_get_cached_model_path(name)
    return _find_model(folder) if folder is not None else None


def _download(name: str) -> Path:
    import huggingface_hub  # noqa: PLC0415 - slow to import
    from model2vec.persistence.datamodels import get_all_model2vec_paths  # noqa: PLC0415
    from model2vec.persistence.utils import SilentTqdm  # noqa: PLC0415

    return Path(
        huggingface_hub.snapshot_download(
            name, allow_patterns=get_all_model2vec_paths(), tqdm_class=SilentTqdm, force_download=False
        )
    )


Matrix: TypeAlias = NDArray[np.float32]

#: Stored type of the vectors. Quantising to int8 changes a cosine by less than 0.003 (`chunk_rows`).
STORED_DTYPE: Final = "int8"
_TEXTS_AT_ONCE: Final = 256
_CORES: Final = os.cpu_count() or 1
#: Number of text runs per generation whose tokens are cached. Both generations take about 12 MB.
_KEPT_RUNS: Final = 32_768
#: Minimum number of texts per thread. Encoding 128 texts takes about 5 ms.
_WORTH_A_THREAD: Final = 128
#: Maximum number of tokens whose vectors are gathered at once: 8 MiB of float32 at 256 dimensions.
_TOKENS_AT_ONCE: Final = 8192


@frozen
class EmbedderIdentity:
    """The identity of an embedding model. Vectors are comparable only if their identities are equal.

    `dims` is the length of a vector, `dtype` the numpy name of the stored type, and `model_sha256` the hash
    of the model's files.
    """

    name: str
    dims: int
    dtype: str
    model_sha256: str


#: The identity of the vectors that the former built-in model made.
FORMER_IDENTITY: Final = EmbedderIdentity(BUILTIN, 256, STORED_DTYPE, FORMER_SHA256)


class Embedder(Protocol):
    """A model that turns texts into vectors. Several threads may call `encode` at once."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Return the identity of the model. It is stored with the model's vectors."""

    def encode(self, texts: Sequence[str], *, one_core: bool = False) -> Matrix:
        """Return one row per text, shape (texts, dims), L2-normalised.

        A text without a known token gives a row of zeros, and no value is ever NaN. With `one_core`, encoding
        uses a single core and takes longer.
        """


def load_embedder(name: str) -> Embedder:
    """Load 'builtin', a model2vec directory or a Hugging Face name. Loading takes about a second.

    'builtin' and directories never use the network. A Hugging Face model is downloaded once. Every failure
    raises `EmbedderUnavailable` with the reason.
    """
    # Tokenizers and safetensors raise bare `Exception`. The hub client raises errors of its HTTP library.
    return explaining(
        lambda: _load(name), lambda error: EmbedderUnavailable(name, str(error) or type(error).__name__)
    )


def explaining(load: Callable[[], T], explain: Callable[[Exception], EmbedderUnavailable]) -> T:
    """Return the result of `load`. Convert an error to `EmbedderUnavailable` with the reason."""
    loaded = outcome.capture(load)
    error = loaded.error if isinstance(loaded, outcome.Error) else None
    if isinstance(error, Exception) and not isinstance(error, EmbedderUnavailable):
        raise explain(error) from error
    return loaded.unwrap()


def loadable_name(stored: EmbedderIdentity) -> str:
    """Return the name by which the model of some stored vectors can be loaded."""
    return FORMER if stored == FORMER_IDENTITY else stored.name


def _load(name: str) -> Embedder:
    if name == FORMER:
        return _StaticEmbedder(FORMER_IDENTITY, read_builtin(name))
    located = locate_model(name)
    model = read_builtin(name) if name == BUILTIN else _read_model(located.folder)
    if model.embedding.dtype.kind == "f" and not np.isfinite(model.embedding).all():
        raise EmbedderUnavailable(name, "its vectors contain values that are not finite")
    identity = EmbedderIdentity(name, int(model.dim), STORED_DTYPE, located.sha256())
    return _StaticEmbedder(identity, model)


def _read_model(folder: Path) -> StaticModel:
    from model2vec import StaticModel  # noqa: PLC0415 - slow to import

    return StaticModel.from_pretrained(folder, force_download=False)


class _StaticEmbedder:
    """Embeds a text as the mean of its token vectors. The result equals the normalised `StaticModel.encode`.

    The class computes the means itself for two reasons. `StaticModel` processes the texts one by one in
    Python, which blocks the event loop. It also changes its tokenizer while encoding, which is not
    thread-safe.
    """

    def __init__(self, identity: EmbedderIdentity, model: StaticModel | BuiltinModel) -> None:
        self.identity = identity
        self._tokenizer = model.tokenizer
        self._by_run = RunTokens(model.tokenizer, _KEPT_RUNS) if splits_at_runs(model.tokenizer) else None
        self._vectors = model.embedding
        self._weights = None if model.weights is None else model.weights.astype(np.float32)
        self._rows = model.token_mapping
        self._unknown = -1 if model.unk_token_id is None else model.unk_token_id
        self._sum_dtype = np.dtype(np.int32 if model.embedding.dtype == np.int8 else np.float32)
        longest = model.max_length
        self._characters = None if longest is None else longest * model.median_token_length

    def encode(self, texts: Sequence[str], *, one_core: bool = False) -> Matrix:
        """Return one L2-normalised row per text (see `Embedder.encode`)."""
        if len(texts) == 1:
            return self._encode_one(texts[0])
        result = np.zeros((len(texts), self.identity.dims), np.float32)
        threads = 1 if one_core else min(_CORES, len(texts) // _WORTH_A_THREAD)
        if threads <= 1:
            self._encode(texts, result)
            return result
        size = -(-len(texts) // threads)
        starts = range(0, len(texts), size)
        with ThreadPoolExecutor(threads - 1) as others:
            rest = [
                others.submit(self._encode, texts[start : start + size], result[start : start + size])
                for start in starts[1:]
            ]
            self._encode(texts[:size], result[:size])
            for part in rest:
                part.result()
        return result

    def _encode_one(self, text: str) -> Matrix:
        """Encode one text, such as a query.

        Few numpy calls are made, because calls take longer than the computation.
        """
        ids = self._tokenizer.encode_batch_fast([text[: self._characters]], add_special_tokens=False)[0].ids
        known = [token for token in ids if token != self._unknown]
        result = np.zeros((1, self.identity.dims), np.float32)
        if known:
            gathered, sum_dtype = self._gather(np.array(known, np.int64))
            result[0] = np.add.reduce(gathered, axis=0, dtype=sum_dtype)
            norm = np.sqrt(np.add.reduce(result * result, axis=1, keepdims=True))
            if norm[0, 0] > 0:
                result /= norm
        return result

    def _encode(self, texts: Sequence[str], result: Matrix) -> None:
        """Write the vectors of the texts into the rows of `result`."""
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            part = texts[start : start + _TEXTS_AT_ONCE]
            tokens, lengths = self._tokenize(part)
            for first, last, begin, end in _cut_slices(lengths):
                self._pool(tokens[begin:end], lengths[first:last], result[start + first : start + last])
        norms = np.linalg.norm(result, axis=1, keepdims=True)
        result /= np.where(norms > 0, norms, 1)

    def _tokenize(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the known token ids of all texts as one array, and the number of tokens per text."""
        cut = [text[: self._characters] for text in texts]
        if self._by_run is not None:
            found = list(map(self._by_run, cut))
            lengths = np.fromiter(map(len, found), np.int64, len(found)) // TOKEN.itemsize
            return self._leave_unknown(np.frombuffer(b"".join(found), TOKEN).astype(np.int64), lengths)
        # Each text is encoded separately. The tokenizer would spread a batch over all cores and use a third
        # more processor time.
        ids = [self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids for text in cut]
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        return self._leave_unknown(
            np.fromiter(chain.from_iterable(ids), np.int64, int(lengths.sum())), lengths
        )

    def _leave_unknown(
        self, tokens: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        known = tokens != self._unknown
        if known.all():
            return tokens, lengths
        texts_of_tokens = np.repeat(np.arange(len(lengths)), lengths)
        return tokens[known], np.bincount(texts_of_tokens[known], minlength=len(lengths))

    def _pool(self, tokens: NDArray[np.int64], lengths: NDArray[np.int64], out: Matrix) -> None:
        """Write the sums of the token vectors of each text into the rows of `out`."""
        if not len(tokens):
            return
        gathered, sum_dtype = self._gather(tokens)
        begin = 0
        # Adding in a loop takes a third of the time of a single `reduceat`, which converts all values before
        # it adds them.
        for row, end in enumerate(np.cumsum(lengths).tolist()):
            if end > begin:
                out[row] = np.add.reduce(gathered[begin:end], axis=0, dtype=sum_dtype)
            begin = end

    def _gather(self, tokens: NDArray[np.int64]) -> tuple[NDArray[Any], np.dtype[Any]]:
        """Return the vectors (tokens, dims) of known tokens, and the type in which they are summed."""
        gathered = self._vectors.take(tokens if self._rows is None else self._rows[tokens], axis=0)
        if self._weights is None:
            return gathered, self._sum_dtype
        return gathered * self._weights[tokens][:, None], np.dtype(np.float32)


def _cut_slices(lengths: NDArray[np.int64]) -> Iterator[tuple[int, int, int, int]]:
    """Divide texts into slices of about `_TOKENS_AT_ONCE` tokens.

    A slice is (first text, last text, first token, last token).
    """
    ends = np.cumsum(lengths)
    first = begin = 0
    while first < len(lengths):
        last = max(first + 1, int(np.searchsorted(ends, begin + _TOKENS_AT_ONCE, side="right")))
        end = int(ends[last - 1])
        yield first, last, begin, end
        first, begin = last, end
