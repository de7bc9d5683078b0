"""What of a note is never shown in an excerpt: its comments.

Hidden characters are replaced by `HIDDEN`, so that places stay what they are; `without_hidden` drops them.
"""

from __future__ import annotations

import re
from typing import Final

from lithos.core.text.markdown import comments

#: Stands for each hidden character: no text that is read as a note has it for anything.
HIDDEN: Final = "\x00"

_BLANK_LINES: Final = re.compile(r"\n(?:[^\S\n]*\n){2,}")


def hide(content: str) -> str:
    """The content with its comments hidden; of equal length, in linear time."""
    if "%%" not in content and "<!--" not in content:
        return content
    parts: list[str] = []
    done = 0
    for start, end in comments(content):
        parts += (content[done:start], HIDDEN * (end - start))
        done = end
    return "".join([*parts, content[done:]]) if parts else content


def without_hidden(text: str) -> str:
    """A short text without what is hidden, and without the blank lines around it."""
    return _BLANK_LINES.sub("\n\n", text.replace(HIDDEN, "")) if HIDDEN in text else text
