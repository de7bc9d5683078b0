"""The pieces of the built-in tokenizer, by which briefings are measured; loaded when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import as_file, files


def load_pieces() -> Callable[[str], int]:
    """A function that tells how many pieces a text of some kilobytes has; any thread may call it.

    Reads half a megabyte, which takes 50 ms. Raises `ImportError`, `OSError`, and the bare `Exception` that
    the library has for a file that it cannot read.
    """
    from tokenizers import Tokenizer  # noqa: PLC0415 - slow to import

    with as_file(files("lithos.models") / "builtin") as folder:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def pieces(text: str) -> int:
        # Lone surrogates are no text to it.
        clean = text.encode("utf-8", "replace").decode()
        # One by one: it would spread a batch over all cores.
        return len(tokenizer.encode_batch_fast([clean], add_special_tokens=False)[0].ids)

    return pieces
