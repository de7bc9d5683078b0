"""Sentences about what could not be read of a transcript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Names of values in the memory of a transcript's progress: the bytes of a cut last line, and how often the
#: transcript was read again from its beginning.
REST, RESTARTS = "rest", "restarts"
_MOST: Final = 20


def notices_of(problem: str, skipped: Mapping[str, int], memory: Mapping[str, Any]) -> tuple[str, ...]:
    """Return in sentences what could not be read of a transcript, and why."""
    found = [problem] if problem else []
    found += [f"Not read: {count:,} {reason}." for reason, count in sorted(skipped.items())]
    restarts, rest = memory.get(RESTARTS, 0), memory.get(REST, 0)
    if restarts:
        found.append(
            "The transcript was replaced, cut or rewritten, and was read again from its beginning"
            f" (times: {restarts:,})."
        )
    if rest:
        found.append(f"The last line is incomplete ({rest:,} bytes). It is read once its rest is there.")
    return tuple(found[:_MOST])
