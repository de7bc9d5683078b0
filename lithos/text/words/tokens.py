"""Token counts: the number of tokenizer pieces, or UTF-8 bytes / 4 rounded up if that is larger.

The count is specified in docs/spec/context.md §1.

Tokenizer pieces and UTF-8 bytes / 4 are both subadditive for parts that are joined at line breaks: the sum of
the counts of the parts is never less than the count of the whole text. If the counts of the parts fit a
budget in sum, the joined text therefore fits too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from lithos.text.pieces import line_pieces
from lithos.text.snippet import cut

#: Function that returns the number of tokens in a text.
Count: TypeAlias = Callable[[str], int]

#: Maximum number of bytes per token. Without a tokenizer, this number of bytes counts as one token.
BYTES: Final = 4


def count_bytes(text: str) -> int:
    """Return the number of UTF-8 bytes / 4, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES)


def count_with(pieces: Count) -> Count:
    """Return a token counter.

    `pieces` returns the number of tokenizer pieces in a text of up to about 64 kB.
    """

    def count(text: str) -> int:
        made = sum(pieces(text[start:stop]) for start, stop in line_pieces(text, 0, len(text), keeps=""))
        return max(made, count_bytes(text))

    return count


def count_safely(text: str) -> int:
    """Return an upper bound of the token count: the number of UTF-8 bytes that are not white space.

    A tokenizer that splits at white space makes no piece without a byte of its own. A text that fits a budget
    by this count therefore fits it with every such tokenizer. Briefings become shorter with this count.
    """
    return max(
        sum(
            len("".join(text[start:stop].split()).encode("utf-8", "surrogatepass"))
            for start, stop in line_pieces(text, 0, len(text), keeps="")
        ),
        count_bytes(text),
    )


def fitting_length(text: str, most: int, count: Count) -> int:
    """Return the length of the longest readable beginning with at most `most` tokens. The length may be 0.

    The length is found by bisection, with about ten counts.
    """
    if most <= 0:
        return 0
    whole = len(text)
    text = text[: most * BYTES]  # A longer text cannot fit, because a token counts for at most `BYTES` bytes.
    if len(text) == whole and count(text) <= most:
        return whole
    least, best, high = 0, 0, len(text) + 1
    while high - least > max(4, high // 50):
        middle = (least + high) // 2
        end = cut(text, middle)[1] if middle < len(text) else len(text)
        if count(text[:end]) <= most:
            least, best = middle, end
        else:
            high = middle
    return best


def cut_tidily(text: str, most: int, count: Count, *, mark: str = " …") -> str:
    """Return the beginning of a text with at most `most` tokens. If the text is cut, `mark` is appended.

    If only the mark would fit, return an empty text.
    """
    text = text.strip()
    if len(text) <= most * BYTES and count(text) <= most:
        return text
    shown = text[: fitting_length(text, most - count(mark), count)].rstrip()
    return f"{shown}{mark}" if shown else ""
