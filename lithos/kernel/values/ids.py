"""Ids as Lithos gives them."""

from __future__ import annotations

import re
from typing import Final

#: An id in lower case.
UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_id(text: str) -> bool:
    """Return whether `text` is an id as Lithos gives them, in any case."""
    return UUID.fullmatch(text.lower()) is not None
