"""The format of ids that Lithos creates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from lithos.kernel.values.errors import AmbiguousIdPrefix

#: Pattern of an id in lower-case letters.
UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_id(text: str) -> bool:
    """Return whether `text` has the format of a Lithos id in upper or lower case."""
    return UUID.fullmatch(text.lower()) is not None


#: Minimum number of characters of an id prefix that can stand for the id.
SHORTEST_PREFIX: Final = 6
#: Maximum number of candidates that the error about an ambiguous prefix names. One more is searched.
MOST_CANDIDATES: Final = 5
_PREFIX: Final = re.compile(r"[0-9a-f-]+")


def prefix_of(text: str) -> str | None:
    """Return a text in the form in which ids can begin with it. Return None if it is too short or too long.

    Lithos ids consist of lower-case letters, and longer texts are whole ids.
    """
    text = text.strip()
    if not SHORTEST_PREFIX <= len(text) <= 36:
        return None
    return text.lower() if _PREFIX.fullmatch(text.lower()) else text


def one_of_prefix(prefix: str, what: str, titles: Mapping[str, str]) -> str | None:
    """Return the only id that begins with a prefix, or None without such an id.

    `titles` are the found objects by id, at most one more than can be named. Raises `AmbiguousIdPrefix`.
    """
    if len(titles) < 2:
        return next(iter(titles), None)
    named = dict(list(titles.items())[:MOST_CANDIDATES])
    more = ", …" if len(titles) > MOST_CANDIDATES else ""
    raise AmbiguousIdPrefix(
        f"Several {what} ids begin with {prefix!r}: {', '.join(named)}{more}. Nothing was changed. Give more "
        "characters of the id.",
        candidates=[{"id": each, "title": title} for each, title in named.items()],
    )
