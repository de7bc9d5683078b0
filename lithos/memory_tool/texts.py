"""Answers to memory commands, and the changes that the commands make to a text.

The wording is that of `BetaLocalFilesystemMemoryTool` in the Anthropic SDK for Python 2.14.0 (24 November
2026, `anthropic/lib/tools/_beta_builtin_memory_tool.py`), because Claude knows it. The differences are in
docs/spec/memory-tool.md §3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lithos.memory_tool.refusals import Refusal

#: Maximum number of lines that can be viewed, and the width of a line number.
MOST_LINES: Final = 999_999
_WIDTH: Final = len(str(MOST_LINES))
#: Maximum number of characters of a view. The rest is read with `view_range`.
MOST_VIEWED: Final = 100_000
#: Maximum number of lines that the error about several occurrences names.
_MOST_NAMED: Final = 100
#: Maximum number of characters that an error repeats from the call.
_MOST_REPEATED: Final = 2_000
_KILO: Final = 1024


def lines_of(text: str) -> list[str]:
    """Return the lines of a text. A line break at the end does not begin another line. CR is kept."""
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def view_of(path: str, text: str, view_range: Sequence[int] | None) -> str:
    """Return the numbered lines of a file, or of the part `view_range` ([first, last], -1 for the end)."""
    lines = lines_of(text)
    if len(lines) > MOST_LINES:
        raise Refusal(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = _bounds(view_range, len(lines))
    return f"Here's the content of {path} with line numbers:\n" + _numbered(lines, first, last)


def _bounds(view_range: Sequence[int] | None, count: int) -> tuple[int, int]:
    if view_range is None or len(view_range) != 2:
        return 1, count
    first, last = view_range
    return max(1, first), count if last == -1 else min(last, count)


def _numbered(lines: list[str], first: int, last: int) -> str:
    """Return the lines from `first` to `last` with their numbers, at most `MOST_VIEWED` characters."""
    rows: list[str] = []
    left = MOST_VIEWED
    for number in range(first, last + 1):
        row = f"{number:>{_WIDTH}}\t{lines[number - 1]}"
        if len(row) > left:
            if not rows:
                rows.append(row[:left])
            end = number - 1 if len(rows) > 1 or number > first else number
            rows.append(
                f"[The view ends at line {end} of {len(lines)}, its limit is {MOST_VIEWED:,} characters. "
                "Read the rest with view_range.]"
            )
            break
        rows.append(row)
        left -= len(row) + 1
    return "\n".join(rows)


def replaced(path: str, text: str, old: str, new: str) -> tuple[str, int]:
    """Return the text with `old` replaced by `new`, and the index of the first changed line.

    Raise `Refusal` unless `old` occurs exactly once.
    """
    if not old:
        raise Refusal("No replacement was performed, old_str is empty. Give the exact text to be replaced.")
    place = text.find(old)
    if place < 0:
        raise Refusal(
            f"No replacement was performed, old_str `{_repeated(old)}` did not appear verbatim in {path}."
        )
    if text.find(old, place + 1) >= 0 and text.count(old) > 1:
        named = ", ".join(map(str, _lines_with(text, old)))
        raise Refusal(
            f"No replacement was performed. Multiple occurrences of old_str `{_repeated(old)}` in lines: "
            f"{named}. Please ensure it is unique"
        )
    return text[:place] + new + text[place + len(old) :], text.count("\n", 0, place)


def _lines_with(text: str, old: str) -> list[int]:
    """Return the line of each occurrence, at most `_MOST_NAMED`."""
    found: list[int] = []
    line, counted, place = 1, 0, text.find(old)
    while place >= 0 and len(found) < _MOST_NAMED:
        line += text.count("\n", counted, place)
        found.append(line)
        counted, place = place, text.find(old, place + 1)
    return found


def _repeated(text: str) -> str:
    return text if len(text) <= _MOST_REPEATED else text[:_MOST_REPEATED] + "…"


def snippet_of(text: str, index: int) -> str:
    """Return the answer to a replacement: the lines around the changed line with this index."""
    lines = lines_of(text)
    return (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        + _numbered(lines, max(1, index - 1), min(len(lines), index + 3))
    )


def inserted(text: str, line: int, added: str) -> str:
    """Return the text with `added` after the line with this number. 0 inserts at the beginning."""
    lines = lines_of(text) if text else []
    if not 0 <= line <= len(lines):
        raise Refusal(
            f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(line, added.rstrip("\n"))
    result = "\n".join(lines)
    return result if result.endswith("\n") else result + "\n"


def listing_of(path: str, total: int, rows: Sequence[tuple[int | None, str]], left_out: int) -> str:
    """Return the view of a folder. `rows` are sizes (None if unknown) and paths, in order."""
    shown = [
        f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:",
        f"{size_of(total)}\t{path}",
        *(f"{'-' if size is None else size_of(size)}\t{path}/{name}" for size, name in rows),
    ]
    if left_out:
        shown.append(f"[{left_out:,} more are not listed. View a directory in this list to see its files.]")
    return "\n".join(shown)


def size_of(count: int) -> str:
    """Return a number of bytes as the SDK shows it: `0B`, `512B`, `1.5K`, `4K`."""
    unit = min(max(count.bit_length() - 1, 0) // 10, 3)
    size = count / _KILO**unit
    return f"{int(size) if size == int(size) else format(size, '.1f')}{'BKMG'[unit]}"


def missing(path: str) -> Refusal:
    """Return the refusal of a path that does not exist."""
    return Refusal(f"The path {path} does not exist. Please provide a valid path.")
