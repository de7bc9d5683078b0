"""A fake server that owns a data directory and offers only `lithos_context`, for the hooks of clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from attrs import define, field

from tests.e2e.hooks import SILENT, Printed, Typist
from tests.e2e.owners import owning


def briefing(text: str = "# Briefing", **more: Any) -> dict[str, Any]:
    """Return a fake answer of `lithos_context`."""
    return {
        "text": text, "tokens": len(text) // 4 + 1, "budget": 800, "items": [], "dropped": [], "warnings": [],
        "cursor": "7", "receipt_id": "r", "degraded": False,
    } | more  # fmt: skip


@define
class Stub:
    """A fake server that owns a data directory and offers one tool."""

    data: Path
    typist: Typist
    answer: Any = field(factory=briefing)
    #: If set, these bytes are sent unchanged instead of the answer.
    raw: bytes | None = None
    status: int = 200
    pause: threading.Event | None = None
    #: If true, every request with a cursor gets the answer that nothing has changed.
    tells_once: bool = False
    calls: list[dict[str, Any]] = field(factory=list)
    tokens: list[str | None] = field(factory=list)
    headers: list[Mapping[str, str]] = field(factory=list)

    def brief(self, *arguments: str, **more: Any) -> Printed:
        return self.typist(self.data, "brief", *arguments, **more)

    def expect_silence(self, *arguments: str, **more: Any) -> None:
        assert self.brief("--hook", *arguments, **more) == SILENT

    def take(self, message: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
        assert (message["method"], message["params"]["name"]) == ("tools/call", "lithos_context")
        self.calls.append(dict(message["params"]["arguments"]))
        self.tokens.append(headers.get("Authorization"))
        self.headers.append(headers)
        if self.pause is not None:
            self.pause.wait(10)
        if self.raw is not None:
            return self.raw
        if self.tells_once and "since" in self.calls[-1]:
            self.answer = briefing("", cursor="8")
        result = {"structuredContent": self.answer, "content": [], "isError": False}
        return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


def serve(stub: Stub) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            body = stub.take(json.loads(self.rfile.read(size)), dict(self.headers))
            try:
                self.send_response(stub.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # the hook ended before it got the answer

        def do_GET(self) -> None:
            body = b'{"status": "ok"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing, because no process reads the log pipe."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server


@contextmanager
def stub_server(data: Path, typist: Typist) -> Iterator[Stub]:
    """Run a fake server that owns the data directory."""
    found = Stub(data, typist)
    server = serve(found)
    with owning(data, f"http://127.0.0.1:{server.server_port}"):
        yield found
    if found.pause is not None:
        found.pause.set()
    server.shutdown()
    server.server_close()
