"""Private keys in PEM armour (RFC 7468): whole blocks, cut blocks, and blocks in JSON strings with `\\n`.

The armour lines stay visible. The lines between them may be indented, quoted, or numbered as in the output of
an editor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lithos.text.secrets.placeholders import entropy

KIND: Final = "private key"
#: Maximum number of characters in a block. Keys of 16,384 bits have about 13,000.
LONGEST: Final = 20_000
_BEGIN: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
#: Characters between two lines of a key: breaks, escaped breaks, indentation, quotes, line numbers.
_BETWEEN: Final = r"(?:\s|\\{1,2}[nrt]|[\"'+,>|#*]|\d{1,5}[\t→:|]){0,60}"
#: A header line in a block, such as `Proc-Type: 4,ENCRYPTED`.
_HEADER: Final = r"(?:(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset): [^\n\\]{0,100})"
_LINE: Final = re.compile(_BETWEEN + rf"(?:{_HEADER}|=?[A-Za-z0-9+/]{{16,2000}}={{0,2}})")
#: The last line of a key, which may be short.
_LAST: Final = re.compile(_BETWEEN + r"[A-Za-z0-9+/]{0,80}={0,2}" + _BETWEEN + r"(?:=[A-Za-z0-9+/]{4})?")
_RUN: Final = re.compile(r"[A-Za-z0-9+/]{24}")
_WHOLE_LINE: Final = re.compile(
    r"[ \t\"'+,>|#*]{0,40}(?:\d{1,5}[\t→:|])?=?[A-Za-z0-9+/]{4,2000}={0,2}[ \t\r\"'+,]{0,8}"
)


def private_keys(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield begin, end and kind of the secret part of each private key."""
    done, at = 0, text.find("-----BEGIN ")
    while at >= 0:
        opened = _BEGIN.match(text, at)
        if opened is not None:
            begin, end = _body(text, opened.end())
            if end > begin:
                yield begin, end, KIND
                done = end
        at = text.find("-----BEGIN ", max(at + 11, done))
    yield from _without_beginning(text)


def _body(text: str, begin: int) -> tuple[int, int]:
    """Return the bounds of the secret part of a block. They are equal if the block has no key."""
    end = text.find("-----", begin, begin + LONGEST)
    closed = _END.match(text, end) if end >= 0 else None
    if closed is not None:
        return (begin, end) if _has_key(text, begin, end) else (begin, begin)
    end = begin
    while (line := _LINE.match(text, end)) is not None and line.end() - begin < LONGEST:
        end = line.end()
    if end > begin and (last := _LAST.match(text, end)) is not None:
        # A short word of a sentence after the block is not part of the key.
        tail = text[end : last.end()]
        end = last.end() if "=" in tail or re.search(r"[0-9+/]", tail) else end
    return begin, end


def _has_key(text: str, begin: int, end: int) -> bool:
    """Return whether a part of a text has a line of a key, and not a placeholder."""
    run = _RUN.search(text, begin, end)
    return run is not None and entropy(run[0]) >= 3.0


def _without_beginning(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the secret parts of blocks whose first lines are cut off."""
    at, done = text.find("-----END "), 0
    while at >= 0:
        closed = _END.match(text, at)
        if closed is not None:
            armour = text.rfind("-----", max(done, at - LONGEST), at)
            low = armour + 5 if armour >= 0 else max(done, at - LONGEST)
            begin = _begin_of_lines(text, low, at)
            if begin < at and _has_key(text, begin, at):
                yield begin, at, KIND
            done = closed.end()
        at = text.find("-----END ", at + 9)


def _begin_of_lines(text: str, low: int, end: int) -> int:
    """Return where the lines of a key begin that end at `end`. Blank text before `end` is skipped."""
    begin = at = end
    while at > low:
        escaped = text.rfind("\\n", low, at)
        line = max(text.rfind("\n", low, at) + 1, escaped + 2 if escaped >= 0 else low, low)
        told = text[line:at]
        if told.strip() and _WHOLE_LINE.fullmatch(told) is None:
            return begin
        begin = line if told.strip() else begin
        at = line - (2 if text.startswith("\\n", line - 2) else 1)
    return begin
