"""Progress bars of commands, on terminals only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tqdm import tqdm

from lithos.server.command.session import CommandSession

#: Called with the name of a step, the number of finished items, and the total.
Progress = Callable[[str, int, int], None]


@contextmanager
def progress_bars(session: CommandSession, unit: str) -> Iterator[Progress | None]:
    """Yield a progress callback that draws one bar per name.

    Yield None with `--json` or without a terminal.
    """
    if session.as_json or not sys.stderr.isatty():
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


@contextmanager
def counted(session: CommandSession, name: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a progress callback for one bar.

    The arguments of the callback are the number of finished items and the total, which is 0 if unknown.
    """
    with progress_bars(session, unit) as progress:
        yield (lambda done, total: None) if progress is None else partial(progress, name)
