"""The two models of the accurate tier, with everything in which they differ.

`ENGLISH` is MiniLM, which is part of the package. `MULTILINGUAL` is an e5-small with 170,000 word pieces. It
is a distribution of its own (`models/accurate-multi`), because it is larger than the rest of the package.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from attrs import field, frozen

from lithos.search.embedding.embedder import STORED_DTYPE, EmbedderIdentity
from lithos.search.ranking import calibrations

#: Number of values of a vector, in both models.
DIMS: Final = 384


@frozen
class TransformerModel:
    """The files of a model and how a text is given to it.

    `name` is the name of the identity, of the directory of the vectors, and of the calibrations. `package`
    and `folder` are the place of the files. `hashes` has the SHA-256 of each file. Other files are never
    loaded.
    """

    name: str
    #: Name of the model in settings and messages.
    title: str
    package: str
    folder: str
    #: Command that installs the model together with the runtime.
    install: str
    hashes: Mapping[str, str]
    #: Supported onnxruntime versions: the first that can run the model, and the first untested major version.
    versions: tuple[tuple[int, int], tuple[int, int]]
    #: Beginning of each text. The model was trained to distinguish questions from passages by it.
    of_query: str = ""
    of_passage: str = ""
    #: File with the mean vectors of queries (`q`) and passages (`p`), and the part of them that is subtracted
    #: from a vector. All vectors of such a model point in one direction, so unrelated texts are similar.
    centre: str = ""
    centre_share: float = 0.0
    identity: EmbedderIdentity = field(init=False)

    @identity.default
    def _find_identity(self) -> EmbedderIdentity:
        lines = [f"{name} {self.hashes[name]}" for name in sorted(self.hashes)]
        if self.centre:  # The form of a text and the subtracted share change the vectors as well.
            lines.append(f"{self.of_query}\0{self.of_passage}\0{self.centre_share}")
        digest = hashlib.sha256("\n".join(lines).encode())
        return EmbedderIdentity(self.name, DIMS, STORED_DTYPE, digest.hexdigest())

    @property
    def is_installed(self) -> bool:
        """Return whether the files of the model are installed. Nothing is imported or verified."""
        return find_spec(self.package) is not None

    def find_folder(self) -> Path:
        """Return the folder of the installed files. Raises `ModuleNotFoundError` without the package."""
        with as_file(files(self.package) / self.folder) as found:
            return found


ENGLISH: Final = TransformerModel(
    name=calibrations.ACCURATE,
    title="english",
    package="lithos.models",
    folder="accurate",
    install="pip install 'lithos-server[accurate]'",
    hashes={
        "model.onnx": "1d5b9d7f8c8aa2ee6722d6efd2a2001b1bc365b1bd34f27a4fa251d36feeae24",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    # The first release with wheels for all supported Pythons.
    versions=((1, 20), (2, 0)),
)
MULTILINGUAL: Final = TransformerModel(
    name=calibrations.MULTILINGUAL,
    title="multilingual",
    package="lithos_accurate_multi",
    folder="",
    install="pip install ./models/accurate-multi",
    hashes={
        "model.onnx": "152decd2654e807c0a80bf8077cb6f6b46eed863840486e69c1fed5c7aacf891",
        "tokenizer.json": "4919cd87a2b33397a54d214b1201ca9d2b26b58d497aeff18375ca7143f2af4c",
        "centre.npz": "71dc5658b2fe5df01cb9227f045a66357bd564016ff6b1b57ff6aa37aa9c3366",
    },
    # 1.19 lacks `GatherBlockQuantized`, which holds the word vectors in 4 bits.
    versions=((1, 20), (2, 0)),
    of_query="query: ",
    of_passage="passage: ",
    centre="centre.npz",
    centre_share=0.8,
)
MODELS: Final = (ENGLISH, MULTILINGUAL)
