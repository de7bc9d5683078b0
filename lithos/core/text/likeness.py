"""How much of one text is in another, by the pairs of neighbouring words that they share.

The containment of word 2-shingles (A. Broder, On the resemblance and containment of documents, 1997). Pairs
tell a rewritten text from another one on the same subject, which shares words and hardly any pairs.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lithos.core.text.analysis import fold

#: Characters of a text that are looked at.
LOOKED_AT: Final = 40_000
#: A text of fewer pairs says too little to be told from others.
LEAST_PAIRS: Final = 8
#: Shares from which on a match is `fair`, and `strong`. False rates: docs/spec/copies.md §4.
FAIR: Final = 0.4
STRONG: Final = 0.6
#: What of ASCII is part of no word becomes a space.
_LETTERS: Final = bytes(each if chr(each).isalnum() and each < 128 else 32 for each in range(256))

Match = Literal["strong", "fair"]
#: Hashes of the pairs of a text, each once, ascending; the same in one process only.
Pairs: TypeAlias = NDArray[np.int64]

#: Mixes the hash of a pair's first word, so that its order counts; odd, hence nothing is lost (mod 2**64).
_FACTOR: Final = np.int64(0x5BD1E9955BD1E995)
#: A sign of a script without spaces is a word.
_NO_SPACES: Final = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_NO_SPACES}]|[^\W_{_NO_SPACES}]+")


def word_pairs(text: str) -> Pairs:
    """The pairs of a text's words, folded; of its first `LOOKED_AT` characters."""
    words = np.fromiter(map(hash, _words(fold(text[:LOOKED_AT]))), np.int64)
    return np.unique(words[:-1] * _FACTOR ^ words[1:])


def _words(folded: str) -> list[str]:
    if folded.isascii():  # in a third of the time
        return folded.encode("ascii").translate(_LETTERS).decode("ascii").split()
    return _WORD.findall(folded)


def likeness(one: Pairs, other: Pairs) -> float:
    """The share of the shorter text that is in the longer one, 0..1; 0 for what says too little."""
    least = min(len(one), len(other))
    if least < LEAST_PAIRS:
        return 0.0
    return len(np.intersect1d(one, other, assume_unique=True)) / least


def match_of(share: float) -> Match | None:
    """What a likeness is called; None for too little."""
    if share >= STRONG:
        return "strong"
    return "fair" if share >= FAIR else None
