"""The HTTP client for a language model: an OpenAI-style chat completion.

The API key goes into the request and nowhere else: no error text quotes a response, an address or a header.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio
from attrs import frozen

from lithos.config.sections import LlmConfig
from lithos.core.learning.inference import Message

if TYPE_CHECKING:
    import httpx2

#: The most bytes of a response body: many times what the output limit allows.
LARGEST_ANSWER: Final = 1024 * 1024


class ChatFault(Enum):
    """The kind of failure of a completion request."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    MALFORMED = "malformed"


class ChatFailed(Exception):
    """The service gave no completion; the message says why without quoting anything of it."""

    def __init__(self, fault: ChatFault, message: str) -> None:
        super().__init__(message)
        self.fault = fault

    @property
    def may_cost(self) -> bool:
        """Whether the request may have used tokens all the same."""
        return self.fault in (ChatFault.TIMEOUT, ChatFault.MALFORMED)


@frozen
class Completion:
    """A completion; `tokens` is None when the response has no usage."""

    text: str
    tokens: int | None


class Chat(Protocol):
    """A language model that completes chats."""

    async def complete(self, messages: Sequence[Message]) -> Completion:
        """Raises `ChatFailed`."""
        ...


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
            raise ChatFailed(ChatFault.TIMEOUT, f"no answer within {settings.timeout_seconds:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as failure:
            # Its type only: a text could hold the address, and with it a password.
            raise ChatFailed(ChatFault.UNREACHABLE, type(failure).__name__) from None
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
                raise ChatFailed(ChatFault.REFUSED, f"HTTP status {response.status_code}")
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
        raise ChatFailed(ChatFault.MALFORMED, f"the answer is longer than {LARGEST_ANSWER} bytes")
    return bytes(body)


def _read_completion(body: bytes) -> Completion:
    try:
        answer = json.loads(body)
        text = answer["choices"][0]["message"]["content"]
    except (ValueError, RecursionError, LookupError, TypeError):
        raise ChatFailed(ChatFault.MALFORMED, "the answer is no chat completion") from None
    if not isinstance(text, str):
        raise ChatFailed(ChatFault.MALFORMED, "the answer has no text")
    return Completion(text, _read_tokens(answer.get("usage")))


def _read_tokens(usage: Any) -> int | None:
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if type(total) is int and 0 <= total < 1 << 40 else None
