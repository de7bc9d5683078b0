"""Where an embedding model lies on disk, and the hash that tells its files from all others."""

from __future__ import annotations

import hashlib
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from attrs import frozen

BUILTIN: Final = "builtin"
_ADVICE: Final = (
    "Set search.embedding_model to 'builtin', to the directory of a model2vec model, "
    "or to the Hugging Face name of one that can be reached."
)


class EmbedderUnavailable(Exception):
    """The embedding model cannot be loaded; the text says why and what to do next, `reason` only why."""

    def __init__(self, name: str, cause: str) -> None:
        first_line = next(iter(cause.strip().splitlines()), "") or "no further detail"
        self.reason = first_line.rstrip(".")
        super().__init__(f"The embedding model {name!r} cannot be loaded: {self.reason}. {_ADVICE}")


@frozen
class ModelFiles:
    """A model2vec model on disk: its folder and the files that make it what it is."""

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
    """Return the files of `name`: 'builtin', a directory, else a Hugging Face name.

    Only a Hugging Face name that is not cached yet touches the network. Raises
    `EmbedderUnavailable` for a directory that holds no model, and whatever the hub client raises.
    """
    if not name.strip():
        raise EmbedderUnavailable(name, "the name is blank")
    folder = _builtin_folder() if name == BUILTIN else Path(name).expanduser()
    if folder.is_dir():
        return _require_model(name, folder)
    if name.startswith(("/", ".", "~")):
        raise EmbedderUnavailable(name, f"there is no directory {str(folder)!r}")
    return _find_cached(name) or _require_model(name, _download(name))


def is_at_hand(name: str) -> bool:
    """Whether nothing has to be downloaded for `name`; it may be broken or missing all the same."""
    is_remote = name != BUILTIN and not Path(name).expanduser().is_dir()
    return not is_remote or name.startswith(("/", ".", "~")) or _find_cached(name) is not None


def _builtin_folder() -> Path:
    with as_file(files("lithos.models") / "builtin") as folder:
        return folder


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
