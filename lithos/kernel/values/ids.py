"""The format of ids that Lithos creates."""

from __future__ import annotations

import re
from typing import Final

#: Pattern of an id in lower-case letters.
UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_id(text: str) -> bool:
    """Return whether `text` has the format of a Lithos id in upper or lower case."""
    return UUID.fullmatch(text.lower()) is not None
