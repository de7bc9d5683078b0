"""Tokenising run by run: the pieces by which briefings are measured, and the tokens that are embedded.

The built-in tokenizer is a WordPiece tokenizer with the normaliser and the pre-tokenizer of BERT: white space
always ends a word and is in no piece, a punctuation mark of ASCII is a word, so the pieces of a text are the
pieces of its runs, in order. Texts repeat their words; the result for a known word is therefore looked up,
which takes a tenth of the time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from tokenizers import Tokenizer

V = TypeVar("V")

#: Runs of each of the two generations, and maximum characters of a cached run: 4 MB in all.
KEPT_RUNS: Final = 16_384
LONGEST_KEPT: Final = 32
#: Runs for one call of the tokenizer: some milliseconds.
_AT_ONCE: Final = 4_096

#: How `RunTokens` gives the numbers of tokens.
TOKEN: Final = np.dtype(np.int32)

#: Text between spaces, and marks of punctuation. The normaliser may drop other white space, and join the text
#: around it.
_RUN: Final = re.compile(r"[^ \n\t!-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]")


class _Runs(Generic[V]):
    """Cache of the results for runs of texts; thread-safe.

    The result for a run is that of a pure function, so it never expires. When one generation is full, the one
    before is dropped; entries that are still used move into the new one.
    """

    def __init__(self, find_all: Callable[[Sequence[str]], Iterable[V]], kept: int = KEPT_RUNS) -> None:
        """`find_all` computes the results for some runs."""
        self._find_all = find_all
        self._limit = kept
        self._young: dict[str, V] = {}
        self._old: dict[str, V] = {}

    def of(self, text: str) -> list[V]:
        """Return the results for the runs of a text of a few kilobytes, in order."""
        runs = _RUN.findall(text)
        young = self._young
        try:
            return list(map(young.__getitem__, runs))
        except KeyError:
            self._learn([run for run in dict.fromkeys(runs) if run not in young], found := dict[str, V]())
        return [found[run] if run in found else young[run] for run in runs]

    @property
    def kept(self) -> int:
        """Runs that are kept."""
        return len(self._young) + len(self._old)

    def _learn(self, unknown: Sequence[str], found: dict[str, V]) -> None:
        """Fill `found` with the results for `unknown`, and cache those of short runs."""
        old = self._old
        new = [run for run in unknown if run not in old]
        found.update((run, old[run]) for run in unknown if run in old)
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            found.update(zip(some, self._find_all(some), strict=True))
        for run in unknown:
            if len(run) <= LONGEST_KEPT:
                if len(self._young) >= self._limit:
                    self._old, self._young = self._young, {}
                self._young[run] = found[run]


class RunPieces(_Runs[int]):
    """How many pieces texts have; any thread may call it."""

    def __call__(self, text: str) -> int:
        """The pieces of a text of some kilobytes."""
        return sum(self.of(text))


class RunTokens(_Runs[bytes]):
    """The tokens of texts, as the tokenizer gives them without special ones; any thread may call it."""

    def __init__(self, tokenizer: Tokenizer, kept: int = KEPT_RUNS) -> None:
        """The tokenizer must be one that `splits_at_runs`."""
        super().__init__(self._encode_all, kept)
        self._tokenizer = tokenizer
        truncation = tokenizer.truncation
        #: Bytes of as many tokens as a text may have.
        self._most = None if truncation is None else int(truncation["max_length"]) * TOKEN.itemsize

    def __call__(self, text: str) -> bytes:
        """The tokens of a text of some kilobytes, in the format `TOKEN`."""
        return b"".join(self.of(text))[: self._most]

    def _encode_all(self, runs: Sequence[str]) -> Iterable[bytes]:
        encode = self._tokenizer.encode_batch_fast
        # One by one: it would spread a batch over all cores.
        return [np.array(encode([run], add_special_tokens=False)[0].ids, TOKEN).tobytes() for run in runs]


def splits_at_runs(tokenizer: Tokenizer) -> bool:
    """Whether the tokens of a text are those of its runs, as with the built-in tokenizer."""
    parts = tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.model
    names = [type(part).__name__ for part in parts]
    truncation = tokenizer.truncation
    return (
        names == ["BertNormalizer", "BertPreTokenizer", "WordPiece"]
        and tokenizer.post_processor is None
        and tokenizer.padding is None
        and not tokenizer.get_added_tokens_decoder()  # found before a text is split
        and (truncation is None or (truncation["direction"], truncation["stride"]) == ("right", 0))
    )


def load_pieces() -> Callable[[str], int]:
    """Return a function that counts the pieces of a text of a few kilobytes; thread-safe.

    Reads half a megabyte, which takes 50 ms. Raises `ImportError`, `OSError`, and the bare `Exception` that
    the library raises for a file that it cannot read.
    """
    return RunPieces(_counting(load_tokenizer()))


def load_tokenizer() -> Tokenizer:
    """The built-in tokenizer, for texts of any length. Raises as `load_pieces` does."""
    from tokenizers import Tokenizer  # noqa: PLC0415 - slow to import

    with as_file(files("lithos.models") / "builtin") as folder:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _counting(tokenizer: Tokenizer) -> Callable[[Sequence[str]], Iterable[int]]:
    def count_all(runs: Sequence[str]) -> Iterable[int]:
        # The tokenizer does not accept lone surrogates.
        clean = [run.encode("utf-8", "replace").decode() for run in runs]
        # One sequence: it would spread a batch over all cores.
        (found,) = tokenizer.encode_batch([clean], is_pretokenized=True, add_special_tokens=False)
        by_run = Counter(found.word_ids)
        return [by_run[number] for number in range(len(runs))]

    return count_all
