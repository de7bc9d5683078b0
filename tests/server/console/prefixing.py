"""Console that is also served below `/v/work`, as in a setup with several vaults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from lithos.server.http import serve
from lithos.server.http.exchanges import Exchanges
from lithos.server.http.ports import AsgiApp, Receive, Scope, Send, base_of
from lithos.vaults.http.prefixing import rebased

BASE: Final = base_of("work")


def behind_prefix(app: AsgiApp, base: str = BASE) -> AsgiApp:
    """Route requests below `base` to the application without that prefix. Other requests stay unchanged."""
    moved = rebased(app)

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].startswith(f"{base}/"):
            await app(scope, receive, send)
            return
        path, raw_path = scope["path"].removeprefix(base), scope["raw_path"].removeprefix(base.encode())
        await moved({**scope, "path": path, "raw_path": raw_path, "root_path": base}, receive, send)

    return route


@contextmanager
def prefixed() -> Iterator[None]:
    """Make every server that starts inside the block also reachable below `BASE`."""

    class Prefixed(Exchanges):
        def __init__(self, app: AsgiApp, *more: Any) -> None:
            super().__init__(behind_prefix(app), *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serve, "Exchanges", Prefixed)
        yield
