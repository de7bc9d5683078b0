"""The one conversation Lithos has with a language model: an OpenAI-style chat completion.

The key goes into the request and nowhere else: no error text quotes an answer, an address or a header.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio
from attrs import field, frozen

from lithos.core.inference import Message

if TYPE_CHECKING:
    import httpx2

#: Bytes of an answer that are read: many times what the output limit allows.
LARGEST_ANSWER: Final = 1024 * 1024


class ChatFault(Enum):
    """Why there is no completion."""

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
        """Whether the model may have worked all the same."""
        return self.fault in (ChatFault.TIMEOUT, ChatFault.MALFORMED)


@frozen
class Completion:
    """What the model said; `tokens` is None when the service does not tell how many it took."""

    text: str
    tokens: int | None


class Chat(Protocol):
    """Asks a language model."""

    async def complete(self, messages: Sequence[Message]) -> Completion:
        """Raises `ChatFailed`."""
        ...


@frozen
class ChatSettings:
    """Whom to ask and within which limits; see the section `lcma.llm`."""

    base_url: str = field(repr=False)
    model: str
    api_key: str | None = field(repr=False)
    timeout_seconds: float
    max_output_tokens: int


class ChatClient:
    """A fresh connection per question: there are a few per drain."""

    def __init__(self, settings: ChatSettings) -> None:
        self._settings = settings
        self._tls: ssl.SSLContext | None = None

    async def complete(self, messages: Sequence[Message]) -> Completion:
        """The model's answer, within the time allowed. Raises `ChatFailed`."""
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
        url = settings.base_url.rstrip("/") + "/chat/completions"
        async with (
            httpx2.AsyncClient(verify=tls, timeout=settings.timeout_seconds) as client,
            client.stream("POST", url, json=question, headers=headers) as response,
        ):
            if response.status_code != httpx2.codes.OK:
                raise ChatFailed(ChatFault.REFUSED, f"HTTP status {response.status_code}")
            return await _read_body(response)


def _read_authorities() -> ssl.SSLContext:
    """Load the client library and the certificates of all authorities: together a tenth of a second."""
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
