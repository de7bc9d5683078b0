"""Sentences about what could not be read of a transcript."""

from __future__ import annotations

from lithos.sessions.following.transcript import REST, RESTARTS
from lithos.sessions.rows.schema import Progress


def notices_of(progress: Progress) -> tuple[str, ...]:
    """Return in sentences what could not be read of a transcript, and why."""
    found = [progress.problem] if progress.problem else []
    found += [f"Not read: {count:,} {reason}." for reason, count in sorted(progress.skipped.items())]
    restarts, rest = progress.memory.get(RESTARTS, 0), progress.memory.get(REST, 0)
    if restarts:
        found.append(
            "The transcript was replaced, cut or rewritten, and was read again from its beginning"
            f" ({restarts:,} times)."
        )
    if rest:
        found.append(f"The last line is incomplete ({rest:,} bytes). It is read once its rest is there.")
    return tuple(found)
