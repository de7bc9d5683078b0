"""The HTTP client for a language model: an OpenAI-style chat completion.

The API key goes into the request and nowhere else: no error text quotes a response, an address or a header.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import frozen

from lithos.config.sections import LlmConfig
from lithos.core.learning.inference import Message

if TYPE_CHECKING:
    import httpx2

#: The most bytes of a response body: many times what the output limit allows.
LARGEST_ANSWER: Final = 1024 * 1024


class ChatFailed(Exception):
    """The service gave no completion; the message says why without quoting anything of it."""

    def __init__(self, message: str, *, may_cost: bool) -> None:
        """`may_cost`: whether the request may have used tokens all the same."""
        super().__init__(message)
        self.may_cost = may_cost


@frozen
class Completion:
    """A completion; `tokens` is None when the response has no usage."""

    text: str
    tokens: int | None


class ChatClient:
    """Opens a new connection per request (no pooling): there are a few per drain."""

    def __init__(self, settings: LlmConfig) -> None:
        self._settings = settings
        self._tls: ssl.SSLContext | None = None

    async def complete(self, messages: Sequence[Message]) -> Completion:
        """Request a completion, within the timeout. Raises `ChatFailed`."""
        settings = self._settings
        if self._tls is None:
            self._tls = await trio.to_thread.run_sync(_read_authorities)
        import httpx2  # noqa: PLC0415 - loaded by now

        try:
            with trio.fail_after(settings.timeout_seconds):
                body = await self._post(self._tls, messages)
        except (trio.TooSlowError, httpx2.TimeoutException):
            raise ChatFailed(f"no answer within {settings.timeout_seconds:g} s", may_cost=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as failure:
            # Its type only: a text could hold the address, and with it a password.
            raise ChatFailed(type(failure).__name__, may_cost=False) from None
        return _read_completion(body)

    async def _post(self, tls: ssl.SSLContext, messages: Sequence[Message]) -> bytes:
        import httpx2  # noqa: PLC0415 - loaded by now

        settings = self._settings
        headers = {"Accept-Encoding": "identity"}  # so that the limit below counts what is unpacked
        if settings.api_key is not None:
            headers["Authorization"] = f"Bearer {settings.api_key}"
        question = {
            "model": settings.model,
            "messages": list(messages),
            "max_tokens": settings.max_output_tokens,
            "temperature": 0,
            "response_format": {"type": "json_object"},
        }
        assert settings.base_url is not None  # else there is no client
        url = settings.base_url.rstrip("/") + "/chat/completions"
        async with (
            httpx2.AsyncClient(verify=tls, timeout=settings.timeout_seconds) as client,
            client.stream("POST", url, json=question, headers=headers) as response,
        ):
            if response.status_code != httpx2.codes.OK:
                raise ChatFailed(f"HTTP status {response.status_code}", may_cost=False)
            return await _read_body(response)


def _read_authorities() -> ssl.SSLContext:
    """Load the client library and the CA certificates: together a tenth of a second."""
    import httpx2  # noqa: PLC0415 - not before there is something to ask

    return httpx2.create_ssl_context()


async def _read_body(response: httpx2.Response) -> bytes:
    body = bytearray()
    with trio.CancelScope() as reading:
        async for part in response.aiter_raw():
            body += part
            if len(body) > LARGEST_ANSWER:
                # Left by an exception the client's generators would wait for the garbage collector.
                reading.cancel()
    if len(body) > LARGEST_ANSWER:
        raise ChatFailed(f"the answer is longer than {LARGEST_ANSWER} bytes", may_cost=True)
    return bytes(body)


def _read_completion(body: bytes) -> Completion:
    try:
        answer = json.loads(body)
        text = answer["choices"][0]["message"]["content"]
    except (ValueError, RecursionError, LookupError, TypeError):
        raise ChatFailed("the answer is no chat completion", may_cost=True) from None
    if not isinstance(text, str):
        raise ChatFailed("the answer has no text", may_cost=True)
    return Completion(text, _read_tokens(answer.get("usage")))


def _read_tokens(usage: Any) -> int | None:
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if type(total) is int and 0 <= total < 1 << 40 else None
