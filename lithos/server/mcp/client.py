"""Client for commands on the same machine.

The client sends tool calls to the `/mcp` of a running owner and reads `/health`.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import trio
from attrs import field, frozen

from lithos.kernel.values.principals import OWN_CALL

TIMEOUT = 60.0


class OwnerUnreachable(Exception):
    """The answer of the owner is not that of a Lithos server, or there is no answer.

    The message says what to try.
    """


class OwnerRefuses(Exception):
    """The owner refuses this token or address. The message says what to do."""


@frozen
class OwnerClient:
    """Client of the server at `url`. Each call opens a connection in a worker thread."""

    url: str
    _token: str | None = field(repr=False)
    _timeout: float = TIMEOUT

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Call a tool and return its structured answer. Raises `OwnerUnreachable`."""
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": dict(arguments)},
        }
        answer = await self._request("POST", "/mcp", json.dumps(message))
        if "error" in answer:
            raise OwnerUnreachable(f"The server refused {tool}: {answer['error'].get('message')}")
        result = answer["result"]
        if result.get("isError"):
            raise OwnerUnreachable(f"The server refused {tool}: {result['structuredContent']['message']}")
        content: Mapping[str, Any] = result["structuredContent"]
        return None if content == {"result": None} else content

    async def health(self) -> Mapping[str, Any]:
        """Return the body of `/health`. Raises `OwnerUnreachable`."""
        return await self._request("GET", "/health", None)

    async def accesses(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the body of `/audit`. Raises `OwnerUnreachable`."""
        return _accepted(await self._request("GET", f"/audit?{urlencode(query)}", None))

    async def reconcile(self, scope: str) -> list[dict[str, Any]] | None:
        """Return the findings of a `reconcile` dry run for one scope.

        The result is None if the server has no `/reconcile`.

        Raises `OwnerUnreachable`.
        """
        answer = await self._request("GET", f"/reconcile?{urlencode({'scope': scope})}", None)
        return None if answer.get("error") == "not_found" else list(_accepted(answer)["results"])

    async def import_step(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send one import step and return the answer.

        A refusal is returned too, with `error` and `message`. Raises `OwnerUnreachable`.
        """
        body = json.dumps(given, ensure_ascii=False)
        return await self._request("POST", "/import", body)

    async def metrics(self) -> str:
        """Return the text of `/metrics`. Raises `OwnerUnreachable`."""
        status, content = await trio.to_thread.run_sync(self._fetch, "GET", "/metrics", None)
        if status != http.HTTPStatus.OK:
            raise OwnerUnreachable(
                f"The server at {self.url} answered {status} instead of its metrics. Check that "
                "it is a Lithos server."
            )
        return content.decode()

    async def _request(self, method: str, path: str, body: str | None) -> dict[str, Any]:
        status, content = await trio.to_thread.run_sync(self._fetch, method, path, body)
        try:
            answer: dict[str, Any] = json.loads(content)
        except ValueError as failure:
            raise OwnerUnreachable(
                f"The server at {self.url} answered {status} without JSON. Check that it is a Lithos server."
            ) from failure
        return answer

    def _fetch(self, method: str, path: str, body: str | None) -> tuple[int, bytes]:
        """Send a request and return the status and body of the response. Blocks."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=self._timeout)
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            OWN_CALL: "1",
        }
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            # If a process serves several vaults, each vault has its own path.
            connection.request(
                method, parts.path.rstrip("/") + path, None if body is None else body.encode(), headers
            )
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as failure:
            raise OwnerUnreachable(
                f"The server at {self.url} owns the data directory but does not answer: "
                f"{failure}. Check that it is running, and restart it if it hangs."
            ) from failure
        finally:
            connection.close()
        if response.status == http.HTTPStatus.UNAUTHORIZED:
            raise OwnerUnreachable(
                f"The server at {self.url} requires a token. Set LITHOS_AUTH_TOKEN to its server.auth_token."
            )
        return response.status, content


def _accepted(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer, or raise `OwnerUnreachable` if it is a refusal."""
    if "error" in answer:
        raise OwnerUnreachable(f"The server refused: {answer.get('message', answer['error'])}")
    return answer
