"""Similarity of texts: the share of one text that another contains, measured by pairs of neighbouring words.

The measure is the containment of word 2-shingles (A. Broder, On the resemblance and containment of documents,
1997). Pairs distinguish a rewritten text from a different text on the same subject, which shares many words
but few pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

import numpy as np
from attrs import define
from numpy.typing import NDArray

from lithos.text.words.analysis import fold

#: Maximum number of characters of a text to examine.
LOOKED_AT: Final = 40_000
#: Minimum number of pairs in a text. Shorter texts cannot be compared reliably.
LEAST_PAIRS: Final = 8
#: Minimum shares for a `fair` and for a `strong` match. False positive rates: docs/spec/copies.md §4.
FAIR: Final = 0.4
STRONG: Final = 0.6
#: Minimum number of texts in a template family. Two or three similar texts are more likely copies.
LEAST_FAMILY: Final = 4
#: Minimum share of the pairs common to two texts that a third text must contain to belong to their template
#: family.
OF_FAMILY: Final = 0.5
#: Number of pairs from which identical texts never count as blank forms, even if there are many of them.
LEAST_COPY: Final = 50
#: Maximum number of texts to store per pair.
_MOST_OWNERS: Final = 32
#: Translation table that replaces all characters except ASCII letters and digits with a space.
_LETTERS: Final = bytes(each if chr(each).isalnum() and each < 128 else 32 for each in range(256))

Match = Literal["strong", "fair"]
#: Hashes of the word pairs in a text, ascending and without duplicates. The hashes are only valid within one
#: process.
Pairs: TypeAlias = NDArray[np.int64]

#: Factor for the hash of the first word of a pair, so that word order matters. The factor is odd, so no
#: information is lost (mod 2**64).
_FACTOR: Final = np.int64(0x5BD1E9955BD1E995)
#: Scripts without spaces, in which each character counts as a word.
_NO_SPACES: Final = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_NO_SPACES}]|[^\W_{_NO_SPACES}]+")


def word_pairs(text: str) -> Pairs:
    """Return the pairs of folded words in the first `LOOKED_AT` characters of a text."""
    words = np.fromiter(map(hash, _words(fold(text[:LOOKED_AT]))), np.int64)
    return np.unique(words[:-1] * _FACTOR ^ words[1:])


def _words(folded: str) -> list[str]:
    if folded.isascii():  # For ASCII text, this takes a third of the time of the pattern.
        return folded.encode("ascii").translate(_LETTERS).decode("ascii").split()
    return _WORD.findall(folded)


def likeness(one: Pairs, other: Pairs) -> float:
    """Return the share (0..1) of the shorter text that the longer text contains.

    If a text is too short, return 0.
    """
    least = min(len(one), len(other))
    if least < LEAST_PAIRS:
        return 0.0
    return len(np.intersect1d(one, other, assume_unique=True)) / least


def clusters(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the groups of names that `pairs` connect directly or indirectly. Each group is sorted."""
    groups: dict[str, list[str]] = {}
    for pair in pairs:
        less, more = sorted((groups.setdefault(each, [each]) for each in pair), key=len)
        if less is not more:
            more += less
            groups |= dict.fromkeys(less, more)
    return sorted({id(group): sorted(group) for group in groups.values()}.values())


def match_of(share: float) -> Match | None:
    """Return the kind of match for a share, or None if the share is too small."""
    if share >= STRONG:
        return "strong"
    return "fair" if share >= FAIR else None


@define(eq=False)
class Templates:
    """Detector of templates, which distinguishes copied texts from texts that were made from one template.

    Text that two texts share with several other texts comes from a template and is ignored. Only the pairs
    passed to `of` are compared with other texts.
    """

    _hashes: Pairs
    _owners: NDArray[np.int32]
    _texts: int

    @classmethod
    def of(cls, texts: Mapping[str, Pairs], wanted: Pairs) -> Templates:
        """Record which of the texts contain each of the `wanted` pairs.

        At most `_MOST_OWNERS` texts are stored per pair.
        """
        kept = [np.intersect1d(each, wanted, assume_unique=True) for each in texts.values()]
        hashes = np.concatenate(kept) if kept else np.empty(0, np.int64)
        owners = np.repeat(np.arange(len(kept), dtype=np.int32), [len(each) for each in kept])
        order = np.argsort(hashes, kind="stable")
        hashes, owners = hashes[order], owners[order]
        places = np.arange(len(hashes)) - np.searchsorted(hashes, hashes, "left")
        first = places < _MOST_OWNERS
        return cls(hashes[first], owners[first], len(kept))

    def likeness(self, one: Pairs, other: Pairs) -> float:
        """Return the likeness of two texts, ignoring the pairs that come from their template."""
        shared = np.intersect1d(one, other, assume_unique=True)
        template = self._template_of(shared)
        if not len(template) or (len(one) == len(other) == len(shared) >= LEAST_COPY):
            return likeness(one, other)
        return likeness(
            np.setdiff1d(one, template, assume_unique=True), np.setdiff1d(other, template, assume_unique=True)
        )

    def _template_of(self, shared: Pairs) -> Pairs:
        """Return the shared pairs of two texts that come from a template.

        If no template is found, return an empty array.
        """
        begins = np.searchsorted(self._hashes, shared, "left")
        counts = np.searchsorted(self._hashes, shared, "right") - begins
        pairs = np.repeat(np.arange(len(shared)), counts)
        within = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
        owners = self._owners[begins[pairs] + within]
        is_family = np.bincount(owners, minlength=self._texts) >= OF_FAMILY * len(shared)
        if is_family.sum() < LEAST_FAMILY:
            return shared[:0]
        return shared[np.bincount(pairs, is_family[owners], minlength=len(shared)) >= LEAST_FAMILY]
