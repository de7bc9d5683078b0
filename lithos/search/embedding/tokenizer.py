"""A cached tokenizer for runs of text. It counts the pieces of briefings and returns the tokens to embed.

The built-in tokenizer is a WordPiece tokenizer with the normaliser and pre-tokenizer of BERT. White space
always ends a word and belongs to no piece. An ASCII punctuation mark is a separate word. The pieces of a text
are therefore the pieces of its runs, in order. Texts repeat their words. Taking the result for a known word
from a cache takes a tenth of the time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np

from lithos.search.embedding.builtin_model import FORMER, read_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

V = TypeVar("V")

#: Number of runs cached per generation, and maximum number of characters of a cached run. The cache takes 4
#: MB in all.
KEPT_RUNS: Final = 16_384
LONGEST_KEPT: Final = 32
#: Number of runs per call of the tokenizer. A call takes a few milliseconds.
_AT_ONCE: Final = 4_096

#: Type of the token ids that `RunTokens` returns.
TOKEN: Final = np.dtype(np.int32)

#: A run is a text between spaces, or a punctuation mark. The normaliser may remove other white space, which
#: joins the text around it.
_RUN: Final = re.compile(r"[^ \n\t!-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]")


class _Runs(Generic[V]):
    """A thread-safe cache of the results for text runs.

    The result for a run comes from a pure function, so it never expires. When one generation is full, the
    previous generation is dropped. Entries that are still used are copied to the new generation.
    """

    def __init__(self, find_all: Callable[[Sequence[str]], Iterable[V]], kept: int = KEPT_RUNS) -> None:
        """Create the cache. `find_all` computes the results for a list of runs."""
        self._find_all = find_all
        self._limit = kept
        self._young: dict[str, V] = {}
        self._old: dict[str, V] = {}

    def of(self, text: str) -> list[V]:
        """Return the results for the runs of a text, in order.

        The text should not be longer than a few kilobytes.
        """
        runs = _RUN.findall(text)
        young = self._young
        try:
            return list(map(young.__getitem__, runs))
        except KeyError:
            self._learn([run for run in dict.fromkeys(runs) if run not in young], found := dict[str, V]())
        return [found[run] if run in found else young[run] for run in runs]

    @property
    def kept(self) -> int:
        """Return the number of cached runs."""
        return len(self._young) + len(self._old)

    def _learn(self, unknown: Sequence[str], found: dict[str, V]) -> None:
        """Add the results for `unknown` to `found`. Cache only the results of short runs."""
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
    """Counts the pieces of a text. Any thread may call the object."""

    def __call__(self, text: str) -> int:
        """Return the number of pieces in a text of a few kilobytes."""
        return sum(self.of(text))


class RunTokens(_Runs[bytes]):
    """Returns the tokens of a text without special tokens. Any thread may call the object."""

    def __init__(self, tokenizer: Tokenizer, kept: int = KEPT_RUNS) -> None:
        """Wrap a tokenizer. `splits_at_runs` must be true for it."""
        super().__init__(self._encode_all, kept)
        self._tokenizer = tokenizer
        truncation = tokenizer.truncation
        #: Maximum number of bytes of tokens per text. None if the tokenizer does not truncate texts.
        self._most = None if truncation is None else int(truncation["max_length"]) * TOKEN.itemsize

    def __call__(self, text: str) -> bytes:
        """Return the tokens of a text of a few kilobytes, in the format `TOKEN`."""
        return b"".join(self.of(text))[: self._most]

    def _encode_all(self, runs: Sequence[str]) -> Iterable[bytes]:
        encode = self._tokenizer.encode_batch_fast
        # Each run is encoded separately, because the tokenizer would spread a batch over all cores.
        return [np.array(encode([run], add_special_tokens=False)[0].ids, TOKEN).tobytes() for run in runs]


def splits_at_runs(tokenizer: Tokenizer) -> bool:
    """Return whether the tokens of every text are the tokens of its runs, as with the built-in tokenizer."""
    parts = tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.model
    names = [type(part).__name__ for part in parts]
    truncation = tokenizer.truncation
    return (
        names == ["BertNormalizer", "BertPreTokenizer", "WordPiece"]
        and tokenizer.post_processor is None
        and tokenizer.padding is None
        and not tokenizer.get_added_tokens_decoder()  # Added tokens may contain several runs.
        and (truncation is None or (truncation["direction"], truncation["stride"]) == ("right", 0))
    )


def load_pieces() -> Callable[[str], int]:
    """Return a thread-safe function that counts the pieces of a text of a few kilobytes.

    The pieces are those of the former built-in model, so counts stay as they were. Loading takes 80 ms.
    Raises `ImportError`, `OSError`, and the bare `Exception` that the library raises for an unreadable file.
    """
    return RunPieces(_counting(load_tokenizer(FORMER)))


def load_tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer of a built-in model, for texts of any length.

    Raises the same errors as `load_pieces`.
    """
    tokenizer = read_tokenizer(name)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _counting(tokenizer: Tokenizer) -> Callable[[Sequence[str]], Iterable[int]]:
    def count_all(runs: Sequence[str]) -> Iterable[int]:
        # The tokenizer does not accept lone surrogates.
        clean = [run.encode("utf-8", "replace").decode() for run in runs]
        # All runs are passed as one sequence. The tokenizer would spread a batch over all cores.
        (found,) = tokenizer.encode_batch([clean], is_pretokenized=True, add_special_tokens=False)
        by_run = Counter(found.word_ids)
        return [by_run[number] for number in range(len(runs))]

    return count_all
