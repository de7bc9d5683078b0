"""Progress bars of long work: on a terminal's stderr, and only for a person."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

from lithos.cli.session import Session
from lithos.services.reconcile_indices import Progress


@contextmanager
def progress_bars(session: Session, unit: str) -> Iterator[Progress | None]:
    """What to tell about progress, one bar per name; None where nobody looks."""
    if session.invocation.as_json or not sys.stderr.isatty():
        yield None
        return
    bars: dict[str, tqdm[Any]] = {}

    def show(name: str, done: int, total: int) -> None:
        if name not in bars:
            bars[name] = tqdm(desc=name, total=total, unit=unit, file=sys.stderr, leave=False)
        bars[name].update(done - bars[name].n)

    try:
        yield show
    finally:
        for bar in bars.values():
            bar.close()
