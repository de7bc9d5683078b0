"""Client for the tools of a Lithos server at an address, over HTTP or HTTPS."""

from __future__ import annotations

import http.client
import json
import secrets
import threading
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from lithos.memory_tool.refusals import Refusal

_TIMEOUT: Final = 60.0
#: Maximum number of bytes of an answer. A server sends at most 40,000 characters unless it is set otherwise.
_LARGEST_ANSWER: Final = 16_000_000
#: Number of attempts if the connection fails. A repeated change has the same `request_id`, so it is made
#: once.
_ATTEMPTS: Final = 3


class ToolAnswer(Exception):
    """The server refused a call. The answer is the envelope with `code` and `message`."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(str(answer.get("message", answer)))
        self.code = str(answer.get("code", ""))


class ServerClient:
    """Calls the tools of the server at `url`. All methods block, and threads take turns."""

    def __init__(self, url: str, token: str | None) -> None:
        self._connection: http.client.HTTPConnection | None = None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                f"{url!r} is not an address of a server. Give one such as http://127.0.0.1:8765."
            )
        self._url = url
        self._is_secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._path = parts.path.rstrip("/").removesuffix("/mcp") + "/mcp"
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._lock = threading.Lock()

    def __del__(self) -> None:
        self._close()

    def change(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that changes something, at most once. Raise `ToolAnswer` or `Refusal`."""
        return self.call(tool, request_id=secrets.token_hex(16), **arguments)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its answer. Raise `ToolAnswer` or `Refusal`."""
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        answer = self._parse(*self._send(json.dumps(message).encode()))
        if answer.get("status") == "error":
            raise ToolAnswer(answer)
        if answer.get("status") == "proposed":
            raise Refusal(
                f"The change waits for a person's approval (proposal {answer.get('proposal_id')}). "
                "Until then the memory is unchanged. Do not repeat the change."
            )
        return answer

    def _parse(self, status: int, content: bytes) -> dict[str, Any]:
        if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            raise Refusal(f"The memory server at {self._url} requires a token that may write. Set `token`.")
        if status == http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            raise Refusal("The text is larger than the memory server accepts. Keep it in several files.")
        try:
            answer: dict[str, Any] = json.loads(content)["result"]["structuredContent"]
        except (ValueError, KeyError, TypeError):
            raise Refusal(
                f"The memory server at {self._url} answered {status} in an unknown form. Check that it is a "
                "Lithos server."
            ) from None
        return answer

    def _send(self, body: bytes) -> tuple[int, bytes]:
        """Return the status and content of the response. Connect again if the kept connection has ended."""
        with self._lock:
            for attempt in range(_ATTEMPTS):
                try:
                    return self._exchange(body)
                except (OSError, http.client.HTTPException) as failure:
                    self._close()
                    if attempt == _ATTEMPTS - 1:
                        raise Refusal(
                            f"The memory server at {self._url} does not answer: {failure}. "
                            "Check that it is running."
                        ) from failure
            raise AssertionError  # the last attempt returns or raises

    def _exchange(self, body: bytes) -> tuple[int, bytes]:
        if self._connection is None:
            make = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
            self._connection = make(self._host, self._port, timeout=_TIMEOUT)
        self._connection.request("POST", self._path, body, self._headers)
        response = self._connection.getresponse()
        content = response.read(_LARGEST_ANSWER + 1)
        if len(content) > _LARGEST_ANSWER:
            raise Refusal(f"The answer of {self._url} has more than {_LARGEST_ANSWER:,} bytes.")
        return response.status, content

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
