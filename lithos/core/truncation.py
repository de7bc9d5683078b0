"""Shortening content to a length at the most readable place (notes spec, section 10)."""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from lithos.core.errors import InvalidInput

_ELLIPSIS: Final = "..."
_BLANK_LINE: Final = re.compile(r"\n[^\S\n]*(?=\n)")
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s)|[。！？]")
_SPACE: Final = re.compile(r"\s")


def truncate(content: str, max_length: int | None) -> tuple[str, bool]:
    """Return `content` in at most `max_length` characters and whether it was cut.

    `None` and 0 mean no limit; a negative limit is refused.
    """
    if max_length is not None and max_length < 0:
        raise InvalidInput(f"max_length must be 0 (no limit) or more, not {max_length}")
    if not max_length or len(content) <= max_length:
        return content, False
    if max_length <= len(_ELLIPSIS):
        return content[:max_length], True
    budget = max_length - len(_ELLIPSIS)
    blank = _last(_BLANK_LINE, content, budget // 2 + 1, budget)
    if blank:
        return content[: blank.start()].rstrip(), True
    sentence = _last(_SENTENCE_END, content, budget // 2, budget)
    if sentence:
        return content[: sentence.end()], True
    space = _last(_SPACE, content, 0, budget)
    return content[: space.start() if space else budget].rstrip() + _ELLIPSIS, True


def _last(pattern: re.Pattern[str], content: str, start: int, budget: int) -> re.Match[str] | None:
    """Return the last match in `content[start:budget]`, which may look at the character after it."""
    matches = pattern.finditer(content, start, budget + 1)
    last = deque((match for match in matches if match.end() <= budget), maxlen=1)
    return last[0] if last else None
