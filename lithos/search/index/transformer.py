"""Accurate embeddings: MiniLM as an int8 ONNX model of the package, run by onnxruntime (extra `accurate`).

The model does the mean pooling over the attention mask and the L2 normalisation itself. Settings are those
that were measured to keep memory small: no arena, batches of at most `TOKENS_AT_ONCE` padded tokens (with
1,536 and an arena the process takes 200-300 MB instead of 90), and no threads that spin. A batch of 256 fits
the processor's cache: 8 % less processor time a text than with 512, a third less than with 1,024.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import outcome

from lithos.kernel.values.errors import IndexFailed
from lithos.search.index.embedder import (
    STORED_DTYPE,
    EmbedderIdentity,
    EmbedderUnavailable,
    Matrix,
    explaining,
)

NAME: Final = "accurate"
DIMS: Final = 384
#: SHA-256 of each file of the model (its NOTICE.md); other files are never loaded.
HASHES: Final = {
    "model.onnx": "1d5b9d7f8c8aa2ee6722d6efd2a2001b1bc365b1bd34f27a4fa251d36feeae24",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
#: The first release whose wheels are for all supported Pythons, and the first major one not tried.
VERSIONS: Final = ((1, 20), (2, 0))
INSTALL: Final = "pip install 'lithos-server[accurate]'"

#: Tokens of a text that count; later ones are cut off.
LONGEST: Final = 256
#: Padded tokens of a batch: one text of `LONGEST`, or several short ones.
TOKENS_AT_ONCE: Final = 256
#: Characters that are tokenised: sixteen a token, so that only a run of blanks is ever cut short by it.
_CHARACTERS: Final = 16 * LONGEST
#: Vectors of queries that are remembered: 1.5 kB each, and the query up to `_CHARACTERS`.
QUERIES_KEPT: Final = 256


def is_installed() -> bool:
    """Whether onnxruntime is there; it is not imported, which takes a third of a second and 20 MB."""
    return find_spec("onnxruntime") is not None


def load_transformer(threads: int = 1, folder: Path | None = None) -> Transformer:
    """Load the model of the package, or of `folder`; takes about half a second.

    Raises `EmbedderUnavailable` with the reason, and what to do, whatever went wrong.
    """
    # A broken installation raises ImportError, OSError, AttributeError, and exceptions of onnxruntime.
    return explaining(
        lambda: _load(threads, folder), lambda error: _unavailable(f"{type(error).__name__}: {error}")
    )


def find_trouble() -> str | None:
    """Return why the model cannot be loaded, None if it can; the check takes little memory."""
    if not is_installed():
        return f"onnxruntime is not installed. To install it: {INSTALL}"
    looked = outcome.capture(lambda: (_import_runtime(), [_verified(name, None) for name in HASHES]))
    if isinstance(looked, outcome.Error):
        error = looked.error
        if not isinstance(error, Exception):
            raise error
        return error.reason if isinstance(error, EmbedderUnavailable) else f"{type(error).__name__}: {error}"
    return None


def _unavailable(cause: str) -> EmbedderUnavailable:
    first_line = next(iter(cause.strip().splitlines()), "").rstrip(".")
    return EmbedderUnavailable(NAME, f"{first_line}. To install it again: {INSTALL}")


def _load(threads: int, folder: Path | None) -> Transformer:
    if not is_installed():
        raise EmbedderUnavailable(NAME, f"onnxruntime is not installed. To install it: {INSTALL}")
    from tokenizers import Tokenizer  # noqa: PLC0415 - slow to import

    runtime = _import_runtime()
    model, words = (_verified(name, folder) for name in HASHES)
    tokenizer = Tokenizer.from_file(str(words))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    options = runtime.SessionOptions()
    options.enable_cpu_mem_arena = False
    options.enable_mem_pattern = False  # of use for batches of one shape only, for 20 MB
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    # From the file: bytes would be copied, and stay for 20 MB.
    session = runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    transformer = Transformer(tokenizer, session)
    found = transformer.encode(["a probe"])
    if found.shape != (1, DIMS) or not np.isclose(np.linalg.norm(found), 1, atol=1e-3):
        raise _unavailable("this version of onnxruntime computes something else than the vectors expected")
    return transformer


def _import_runtime() -> Any:
    import onnxruntime  # noqa: PLC0415 - slow to import

    version = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
    least, beyond = VERSIONS
    if not least <= version < beyond:
        wanted = f"from {'.'.join(map(str, least))} to below {beyond[0]}"
        raise _unavailable(f"onnxruntime {onnxruntime.__version__} is installed, and must be {wanted}")
    return onnxruntime


def _verified(name: str, folder: Path | None) -> Path:
    """Return a file of the model after checking its hash."""
    if folder is None:
        with as_file(files("lithos.models") / NAME) as found:
            folder = found
    path = folder / name
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as failure:
        raise _unavailable(f"{path} cannot be read ({failure.strerror or failure})") from failure
    if digest != HASHES[name]:
        raise _unavailable(f"{path} is damaged: its SHA-256 is not the one expected")
    return path


def identity() -> EmbedderIdentity:
    """The identity of the vectors, which is known without loading the model."""
    digest = hashlib.sha256("\n".join(f"{name} {HASHES[name]}" for name in sorted(HASHES)).encode())
    return EmbedderIdentity(NAME, DIMS, STORED_DTYPE, digest.hexdigest())


class Transformer:
    """An `Embedder`; any thread may encode, also several at once.

    A text counts with its first 256 tokens; every text gets a vector, one of no words too.
    """

    def __init__(self, tokenizer: Any, session: Any) -> None:
        self.identity = identity()
        self._tokenizer = tokenizer
        self._session = session
        self._lock = threading.Lock()
        self._queries: OrderedDict[str, Matrix] = OrderedDict()
        #: The model of which this is a view: in use as long as the view is.
        self._whole: Transformer | None = None

    def forgetful(self) -> Transformer:
        """Return the same model with its own memory of queries.

        If several vaults shared one, the time of an answer would reveal the queries of another vault.
        """
        view = Transformer(self._tokenizer, self._session)
        view._whole = self
        return view

    def encode(self, texts: Sequence[str], *, one_core: bool = False) -> Matrix:
        """One L2-normalised row per text, shape (texts, 384), in batches of texts of about one length.

        `one_core` changes nothing: `search.accurate_threads` says how many. Raises `IndexFailed` when
        onnxruntime fails.
        """
        del one_core
        done = outcome.capture(self._encode, texts)
        if isinstance(done, outcome.Error) and isinstance(done.error, Exception):
            problem = f"{type(done.error).__name__}: {done.error}"
            raise IndexFailed(f"The accurate model failed ({problem}).") from done.error
        rows: Matrix = done.unwrap()
        return rows

    def encode_query(self, text: str) -> Matrix:
        """The row of a query (384,), from the cache if it was asked lately. Raises `IndexFailed`."""
        asked = text[:_CHARACTERS]
        with self._lock:
            known = self._queries.get(asked)
            if known is not None:
                self._queries.move_to_end(asked)
                return known
        row: Matrix = self.encode([asked])[0]
        with self._lock:
            self._queries[asked] = row
            if len(self._queries) > QUERIES_KEPT:
                self._queries.popitem(last=False)
        return row

    def _encode(self, texts: Sequence[str]) -> Matrix:
        result = np.zeros((len(texts), DIMS), np.float32)
        # One by one: the tokenizer would spread a batch over all cores.
        ids = [self._tokenizer.encode(text[:_CHARACTERS]).ids for text in texts]
        for batch in _pack([len(each) for each in ids]):
            longest = max(len(ids[i]) for i in batch)
            tokens = np.zeros((len(batch), longest), np.int64)
            mask = np.zeros_like(tokens)
            for row, i in enumerate(batch):
                tokens[row, : len(ids[i])] = ids[i]
                mask[row, : len(ids[i])] = 1
            result[batch] = self._session.run(["v"], {"input_ids": tokens, "attention_mask": mask})[0]
        if not np.isfinite(result).all():
            raise ValueError("the result contains a value that is not a number")
        return result


def _pack(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Cut texts into batches: no batch has more than `TOKENS_AT_ONCE` tokens when padded to its longest."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[i] > TOKENS_AT_ONCE:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
