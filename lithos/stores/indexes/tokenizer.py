"""The pieces of the built-in tokenizer, by which briefings are measured; loaded when first asked for.

It is a WordPiece tokenizer with the normaliser and the pre-tokenizer of BERT: white space always ends a word
and is in no piece, a punctuation mark of ASCII is a word, so the pieces of a text are the sum of those of the
runs between. Texts repeat their words; what one has is therefore looked up, which takes a tenth of the time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Runs of each of the two generations that are kept, and characters of one of them: 4 MB in all.
KEPT_RUNS: Final = 16_384
LONGEST_KEPT: Final = 32
#: Runs for one call of the tokenizer: some milliseconds.
_AT_ONCE: Final = 4_096

#: What is between spaces, and marks of punctuation. Other white space the normaliser may drop, and join what
#: stands around it.
_RUN: Final = re.compile(r"[^ \n\t!-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]")


class RunPieces:
    """How many pieces the runs of a text have; any thread may call it.

    The counts are those of a pure function, so they never expire. When one generation is full the one before
    is dropped; what is still asked for comes into the new one.
    """

    def __init__(self, count_all: Callable[[Sequence[str]], Iterable[int]], kept: int = KEPT_RUNS) -> None:
        """`count_all` tells of each run how many pieces it has."""
        self._count_all = count_all
        self._limit = kept
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        """The pieces of a text of some kilobytes."""
        runs = _RUN.findall(text)
        young = self._young
        try:
            return sum(map(young.__getitem__, runs))
        except KeyError:
            self._learn([run for run in dict.fromkeys(runs) if run not in young], counts := dict[str, int]())
        return sum(counts[run] if run in counts else young[run] for run in runs)

    @property
    def kept(self) -> int:
        """Runs that are kept."""
        return len(self._young) + len(self._old)

    def _learn(self, unknown: Sequence[str], counts: dict[str, int]) -> None:
        """Fill `counts` with those of `unknown`, and keep the short ones."""
        old = self._old
        new = [run for run in unknown if run not in old]
        counts.update((run, old[run]) for run in unknown if run in old)
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            counts.update(zip(some, self._count_all(some), strict=True))
        for run in unknown:
            if len(run) <= LONGEST_KEPT:
                if len(self._young) >= self._limit:
                    self._old, self._young = self._young, {}
                self._young[run] = counts[run]


def load_pieces() -> Callable[[str], int]:
    """A function that tells how many pieces a text of some kilobytes has; any thread may call it.

    Reads half a megabyte, which takes 50 ms. Raises `ImportError`, `OSError`, and the bare `Exception` that
    the library has for a file that it cannot read.
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
        # Lone surrogates are no text to it.
        clean = [run.encode("utf-8", "replace").decode() for run in runs]
        # One sequence: it would spread a batch over all cores.
        (found,) = tokenizer.encode_batch([clean], is_pretokenized=True, add_special_tokens=False)
        by_run = Counter(found.word_ids)
        return [by_run[number] for number in range(len(runs))]

    return count_all
