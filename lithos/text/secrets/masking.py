"""Search and masking of all kinds of secrets in a text. Takes linear time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from lithos.text.secrets.assignments import assignments
from lithos.text.secrets.passwords_in_urls import passwords_in_urls
from lithos.text.secrets.private_keys import private_keys
from lithos.text.secrets.provider_keys import provider_keys

#: Begin, end and kind of a secret value in a text.
Span = tuple[int, int, str]
#: Searches in the order of their precision. The kind of the first one names a value that several find.
_SEARCHES: Final[tuple[Callable[[str], Iterator[Span]], ...]] = (
    private_keys, provider_keys, passwords_in_urls, assignments,
)  # fmt: skip


def find_secrets(text: str) -> list[Span]:
    """Return begin, end and kind of each secret value, in order. The values do not overlap."""
    ranked = [
        (begin, end, rank, kind) for rank, search in enumerate(_SEARCHES) for begin, end, kind in search(text)
    ]
    found: list[tuple[int, int, int, str]] = []
    for begin, end, rank, kind in sorted(ranked):
        if found and begin < found[-1][1]:
            last = found[-1]
            best = min((last[2], last[3]), (rank, kind), key=lambda each: each[0])
            found[-1] = (last[0], max(last[1], end), *best)
        else:
            found.append((begin, end, rank, kind))
    return [(begin, end, kind) for begin, end, _, kind in found]


def mask(text: str) -> str:
    """Return the text with each secret value replaced by its kind, such as `[secret: github token]`.

    Names, armour lines and the rest of an address stay. A masked text is not changed by masking it again.
    """
    spans = find_secrets(text)
    if not spans:
        return text
    ends = [0, *(end for _, end, _ in spans)]
    parts = (
        (text[done:begin], f"[secret: {kind}]") for done, (begin, _, kind) in zip(ends, spans, strict=False)
    )
    return "".join([*chain.from_iterable(parts), text[ends[-1] :]])
