"""Accurate embeddings: an int8 ONNX model (`transformer_models`), run by onnxruntime (extra `accurate`).

The model itself computes the mean over the attention mask and the L2 normalisation. Measurements show that
three settings keep memory small: no arena, batches of at most `TOKENS_AT_ONCE` padded tokens, and no spinning
threads. With 1,536 tokens and an arena, the model takes 200-300 MB instead of 90. A batch of 256 tokens fits
the processor's cache. It takes 8 % less processor time per text than 512 tokens, and a third less than 1,024.

A prefix shows the multilingual model whether a text is a query or a passage. From its vectors a part of their
mean is subtracted. Otherwise the similarity of unrelated texts would be 0.7 to 0.8 and depend on their
languages, so no minimum similarity would serve.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import outcome

from lithos.kernel.values.errors import IndexFailed
from lithos.search.embedding.embedder import EmbedderUnavailable, Matrix, explaining
from lithos.search.embedding.transformer_models import DIMS, ENGLISH, TransformerModel

#: Maximum number of tokens of a text. All later tokens are ignored.
LONGEST: Final = 256
#: Maximum number of padded tokens in a batch: one text of `LONGEST` tokens, or several short texts.
TOKENS_AT_ONCE: Final = 256
#: Maximum number of characters to tokenise: sixteen per token. In practice this limit cuts only texts with
#: long runs of blanks.
_CHARACTERS: Final = 16 * LONGEST
#: Number of cached query vectors. A cached vector takes 1.5 kB plus the query of up to `_CHARACTERS`
#: characters.
QUERIES_KEPT: Final = 256
#: Minimum divisor of a vector. A vector that equals its mean has no direction.
_LEAST_NORM: Final = 1e-6


def is_installed() -> bool:
    """Return whether onnxruntime is installed.

    The package is not imported for this check, because importing takes 0.3 s and 20 MB.
    """
    return find_spec("onnxruntime") is not None


def load_transformer(
    threads: int = 1, model: TransformerModel = ENGLISH, folder: Path | None = None
) -> Transformer:
    """Load the model from its package or from `folder`. Loading takes about half a second.

    Every failure raises `EmbedderUnavailable` with the reason and the next step.
    """
    # A broken installation raises ImportError, OSError, AttributeError or an error of onnxruntime.
    return explaining(
        lambda: _load(threads, model, folder),
        lambda error: _unavailable(model, f"{type(error).__name__}: {error}"),
    )


def find_trouble(model: TransformerModel = ENGLISH) -> str | None:
    """Return why the model cannot be loaded.

    The result is None if the model can be loaded. The check takes little memory.
    """
    missing = _find_missing(model)
    if missing is not None:
        return missing
    looked = outcome.capture(
        lambda: (_import_runtime(model), [_verified(model, name, None) for name in model.hashes])
    )
    if isinstance(looked, outcome.Error):
        error = looked.error
        if not isinstance(error, Exception):
            raise error
        return error.reason if isinstance(error, EmbedderUnavailable) else f"{type(error).__name__}: {error}"
    return None


def _find_missing(model: TransformerModel) -> str | None:
    if not is_installed():
        return f"onnxruntime is not installed. To install it: {model.install}"
    if not model.is_installed:
        return f"the {model.title} model is not installed. To install it: {model.install}"
    return None


def _unavailable(model: TransformerModel, cause: str) -> EmbedderUnavailable:
    first_line = next(iter(cause.strip().splitlines()), "").rstrip(".")
    return EmbedderUnavailable(model.name, f"{first_line}. To reinstall it: {model.install}")


def _load(threads: int, model: TransformerModel, folder: Path | None) -> Transformer:
    missing = _find_missing(model)
    if missing is not None:
        raise EmbedderUnavailable(model.name, missing)
    from tokenizers import Tokenizer  # noqa: PLC0415 - slow to import

    runtime = _import_runtime(model)
    paths = {name: _verified(model, name, folder) for name in model.hashes}
    tokenizer = Tokenizer.from_file(str(paths["tokenizer.json"]))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    options = runtime.SessionOptions()
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False  # Memory patterns only help batches of a single shape, and cost 20 MB.
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    # The model is loaded from its file, because passing the bytes would copy them and take another 20 MB.
    session = runtime.InferenceSession(str(paths["model.onnx"]), options, providers=["CPUExecutionProvider"])
    centres = _read_centres(paths[model.centre], model.centre_share) if model.centre else None
    transformer = Transformer(tokenizer, session, model, centres)
    found = transformer.encode(["a probe"])
    if found.shape != (1, DIMS) or not np.isclose(np.linalg.norm(found), 1, atol=1e-3):
        raise _unavailable(model, "this version of onnxruntime computes different vectors than expected")
    return transformer


def _import_runtime(model: TransformerModel) -> Any:
    import onnxruntime  # noqa: PLC0415 - slow to import

    version = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
    least, beyond = model.versions
    if not least <= version < beyond:
        wanted = f"from {'.'.join(map(str, least))} to below {beyond[0]}"
        raise _unavailable(
            model,
            f"onnxruntime {onnxruntime.__version__} is installed, but for the {model.title} model it must be "
            f"{wanted}",
        )
    return onnxruntime


def _verified(model: TransformerModel, name: str, folder: Path | None) -> Path:
    """Return the path of a model file if its hash is correct."""
    path = (model.find_folder() if folder is None else folder) / name
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as failure:
        raise _unavailable(model, f"{path} cannot be read ({failure.strerror or failure})") from failure
    if digest != model.hashes[name]:
        raise _unavailable(model, f"{path} is damaged: its SHA-256 is not the expected one")
    return path


def _read_centres(path: Path, share: float) -> Centres:
    """Return what is subtracted from the vectors of queries and of passages."""
    with np.load(path, allow_pickle=False) as read:
        queries, passages = (np.asarray(read[name], np.float32) * np.float32(share) for name in ("q", "p"))
    return Centres(queries, passages)


class Centres(NamedTuple):
    """Vectors (dims,) that are subtracted from the vectors of queries and of passages."""

    queries: Matrix
    passages: Matrix


class Transformer:
    """The accurate `Embedder`. Several threads may encode at once.

    Only the first 256 tokens of a text are used. Every text gets a vector, even a text without words.
    """

    def __init__(
        self,
        tokenizer: Any,
        session: Any,
        model: TransformerModel = ENGLISH,
        centres: Centres | None = None,
    ) -> None:
        self.identity = model.identity
        self._model = model
        self._centres = centres
        self._tokenizer = tokenizer
        self._session = session
        self._lock = threading.Lock()
        self._queries: OrderedDict[str, Matrix] = OrderedDict()
        #: The model that this view shares. The reference prevents the model from being released.
        self._whole: Transformer | None = None

    def forgetful(self) -> Transformer:
        """Return a view of the same model that has its own cache of query vectors.

        If several vaults shared a cache, the response time would show whether another vault had the same
        query.
        """
        view = Transformer(self._tokenizer, self._session, self._model, self._centres)
        view._whole = self
        return view

    def encode(self, texts: Sequence[str], *, one_core: bool = False) -> Matrix:
        """Return one L2-normalised row per passage, shape (texts, 384).

        Texts of similar length are encoded in the same batch.

        `one_core` has no effect: `search.accurate_threads` sets the number of threads. Raises `IndexFailed`
        if onnxruntime fails.
        """
        del one_core
        return self._try_encode(texts, is_query=False)

    def _try_encode(self, texts: Sequence[str], *, is_query: bool) -> Matrix:
        done = outcome.capture(lambda: self._encode(texts, is_query=is_query))
        if isinstance(done, outcome.Error) and isinstance(done.error, Exception):
            problem = f"{type(done.error).__name__}: {done.error}"
            raise IndexFailed(f"The accurate model failed ({problem}).") from done.error
        rows: Matrix = done.unwrap()
        return rows

    def encode_query(self, text: str) -> Matrix:
        """Return the vector of a query (384,). Recent queries are cached. Raises `IndexFailed`."""
        asked = text[:_CHARACTERS]
        with self._lock:
            known = self._queries.get(asked)
            if known is not None:
                self._queries.move_to_end(asked)
                return known
        row: Matrix = self._try_encode([asked], is_query=True)[0]
        with self._lock:
            self._queries[asked] = row
            if len(self._queries) > QUERIES_KEPT:
                self._queries.popitem(last=False)
        return row

    def _encode(self, texts: Sequence[str], *, is_query: bool) -> Matrix:
        before = self._model.of_query if is_query else self._model.of_passage
        result = np.zeros((len(texts), DIMS), np.float32)
        # Each text is tokenised separately, because the tokenizer would spread a batch over all cores.
        ids = [self._tokenizer.encode(before + text[:_CHARACTERS]).ids for text in texts]
        for batch in _pack([len(each) for each in ids]):
            longest = max(len(ids[i]) for i in batch)
            tokens = np.zeros((len(batch), longest), np.int64)
            mask = np.zeros_like(tokens)
            for row, i in enumerate(batch):
                tokens[row, : len(ids[i])] = ids[i]
                mask[row, : len(ids[i])] = 1
            result[batch] = self._session.run(["v"], {"input_ids": tokens, "attention_mask": mask})[0]
        if not np.isfinite(result).all():
            raise ValueError("the result contains a value that is not finite")
        if self._centres is not None:
            result -= self._centres.queries if is_query else self._centres.passages
            result /= np.maximum(np.linalg.norm(result, axis=1, keepdims=True), _LEAST_NORM)
        return result


def _pack(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the batches. Each batch is a list of text indices.

    No batch has more than `TOKENS_AT_ONCE` tokens when padded to its longest text.
    """
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[i] > TOKENS_AT_ONCE:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
