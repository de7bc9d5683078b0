"""Progress notifications for callers that sent a progress token with a long call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trio

from lithos.search.embedding.embedder import Embedder
from tests.server.whole import SseSession, whole_server
from tests.servers import load_once


async def test_search_reports_progress_while_waiting_for_the_model(tmp_path: Path) -> None:
    """docs/spec/mcp.md §3: the server sends progress only in sessions and with a progress token."""
    load_once("builtin")
    may_load = trio.Event()

    def load_late(model: str) -> Embedder:
        trio.from_thread.run(may_load.wait)
        return load_once(model)

    search: dict[str, Any] = {
        "name": "lithos_search",
        "arguments": {"query": "bread", "mode": "semantic", "threshold": 0.0},
    }
    async with whole_server(tmp_path, load=load_late) as whole, SseSession.open(whole) as session:
        await whole.lithos.create("Bread", "Sourdough.")
        await session.greet("2025-11-25")
        await session.send(
            {
                "jsonrpc": "2.0",
                "id": "with a token",
                "method": "tools/call",
                "params": search | {"_meta": {"progressToken": 7}},
            }
        )
        progress = (await session.message())["params"]
        assert progress == {
            "progressToken": 7,
            "progress": progress["progress"],
            "total": 10.0,
            "message": "The semantic index is being built.",
        }
        assert 0 <= progress["progress"] < 5
        may_load.set()
        while "id" not in (answer := await session.message()):
            assert answer["params"]["progress"] > progress["progress"]
        assert [row["title"] for row in answer["result"]["structuredContent"]["results"]] == ["Bread"]
        await session.ask("tools/call", **search)
        assert session.notices == []
