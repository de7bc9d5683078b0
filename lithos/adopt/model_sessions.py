"""Merging of texts that sessions of a client wrote over each other.

A session of a client reads a memory file, adds lines, and writes the whole file. If another session does the
same in between, its lines are missing in the last text. The last text then contains all lines of a version
that is older than the text before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen


@frozen
class _Added:
    """Lines that a text has in addition to an older text, and the line before them."""

    after: str | None
    lines: tuple[str, ...]


def merge_sessions(texts: Sequence[str]) -> str | None:
    """Return the newest text with the lines that it lacks of texts that were written at the same time.

    `texts` are the versions of a file within a short time, newest first, and before them one older version
    at least. Return None if nothing is missing, if the newest text restores an older one, or if it removes or
    changes lines, so that the version from which it was made is not known.
    """
    newest = texts[0] if texts else ""
    lines = set(newest.split("\n"))
    number = next((n for n, each in enumerate(texts) if n and set(each.split("\n")) <= lines), 0)
    if not number or newest in texts[1 : number + 1]:
        return None
    base = texts[number]
    merged = newest.split("\n")
    for sibling in reversed(texts[1:number]):
        merged = _with_added(merged, base, sibling)
    return None if len(merged) == newest.count("\n") + 1 else "\n".join(merged)


def _with_added(merged: list[str], base: str, sibling: str) -> list[str]:
    """Return the lines with those that a sibling added to the base, each after the line it followed."""
    known, own = set(merged), set(base.split("\n"))
    waiting: dict[str | None, list[str]] = {}
    for added in _added(own, sibling):
        missing = [line for line in added.lines if line.strip() and line not in known]
        if missing:
            anchor = added.after if added.after in known else merged[-1]
            waiting.setdefault(anchor, []).extend(missing)
    if not waiting:
        return merged
    made = list(waiting.pop(None, ()))
    left = list[str]()
    for line in merged:
        if line in own and left:  # After the lines that the newest text added at the same place.
            made += left
            left = []
        made.append(line)
        left += waiting.pop(line, ())
    return [*made[:-1], *left, ""] if made[-1:] == [""] else [*made, *left]


def _added(own: set[str], sibling: str) -> Iterator[_Added]:
    after: str | None = None
    run = list[str]()
    for line in sibling.split("\n"):
        if line not in own:
            run.append(line)
            continue
        if run:
            yield _Added(after, tuple(run))
            run = []
        after = line
    if run:
        yield _Added(after, tuple(run))
