"""The built-in static model, and the former built-in model that it contains.

The first rows of the model, and the first pieces of its tokenizer, are the whole former model. The former
model therefore needs no files of its own. It answers for vectors that it made, until the notes are embedded
again. Its pieces also count the tokens of briefings.
"""

from __future__ import annotations

import json
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BUILTIN: Final = "builtin"
#: Name by which `load_embedder` loads the former model. Its vectors are stored under the name `builtin`.
FORMER: Final = "builtin:english"
FORMER_SHA256: Final = "fb67ec3ebe27c0a4af91debd71364b9c9571fe4df8abd7c2d938ed7e8552dd6f"
#: Number of rows and pieces of the former model.
_FORMER_ROWS: Final = 31_500
#: Maximum number of characters of a word in the former tokenizer.
_FORMER_WORD: Final = 100
#: Names of the files, in the order in which the hash of the model covers them.
_FILES: Final = ("config.json", "model.safetensors", "tokenizer.json")


@frozen(eq=False)
class BuiltinModel:
    """The parts of the model that an embedder reads, under the names that `model2vec.StaticModel` uses.

    Creating a `StaticModel` takes three times as long, because it copies the tokenizer and lists all pieces.
    """

    embedding: NDArray[Any]
    tokenizer: Tokenizer
    unk_token_id: int | None
    max_length: int
    #: Median of the former model, so that a long text is cut where it was cut before.
    median_token_length: int = field(default=6, init=False)
    weights: None = field(default=None, init=False)
    token_mapping: None = field(default=None, init=False)

    @property
    def dim(self) -> int:
        """Return the length of a vector."""
        return int(self.embedding.shape[1])


def find_builtin() -> tuple[Path, tuple[Path, ...]]:
    """Return the folder and the files of the built-in model."""
    with as_file(files("lithos.models") / BUILTIN) as folder:
        return folder, tuple(folder / name for name in _FILES)


def read_builtin(name: str) -> BuiltinModel:
    """Read the model `BUILTIN` or `FORMER` from its files. Raises the errors of the libraries."""
    from safetensors import safe_open  # noqa: PLC0415 - slow to import

    _, (config, vectors, _) = find_builtin()
    settings = json.loads(config.read_bytes())
    with safe_open(vectors, "numpy") as stored:
        rows = stored.get_slice("embeddings")
        embedding = rows[:_FORMER_ROWS] if name == FORMER else rows[:]
    tokenizer = read_tokenizer(name)
    return BuiltinModel(embedding, tokenizer, tokenizer.token_to_id("[UNK]"), settings["max_length"])


def read_tokenizer(name: str) -> Tokenizer:
    """Read the tokenizer of the model `BUILTIN` or `FORMER`. Raises the errors of the library."""
    from tokenizers import Tokenizer  # noqa: PLC0415 - slow to import

    _, (_, _, path) = find_builtin()
    if name != FORMER:
        return Tokenizer.from_file(str(path))
    described = json.loads(path.read_bytes())
    model = described["model"]
    model["vocab"] = {piece: row for piece, row in model["vocab"].items() if row < _FORMER_ROWS}
    model["max_input_chars_per_word"] = _FORMER_WORD
    return Tokenizer.from_str(json.dumps(described))
