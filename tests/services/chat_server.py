"""A small language model service on a port of its own, as unreliable as a test wants it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import h11
import trio
from attrs import define, field

#: Sends whatever it likes to one question.
Behave = Callable[[trio.SocketStream, dict[str, Any]], Awaitable[None]]


def http(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    """A whole response; a `length` of one's own is a lie."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


def completion(text: str, **usage: Any) -> bytes:
    """A chat completion."""
    answer = {"choices": [{"message": {"role": "assistant", "content": text}}]}
    return http(json.dumps(answer | ({"usage": usage} if usage else {})).encode())


def saying(response: bytes) -> Behave:
    """Answers every question with these bytes."""

    async def behave(stream: trio.SocketStream, question: dict[str, Any]) -> None:
        await stream.send_all(response)

    return behave


def judging(relation: str = "supports", **more: Any) -> Behave:
    """Sees this relation from every subject to each of its neighbours."""

    async def behave(stream: trio.SocketStream, question: dict[str, Any]) -> None:
        shown = json.loads(question["messages"][1]["content"])
        item = {"relation": relation, "direction": "subject_to_note", "confidence": 0.9, "rationale": "so"}
        edges = [item | {"note": one["note"]} | more for one in shown["notes"]]
        await stream.send_all(completion(json.dumps({"edges": edges}), total_tokens=100))

    return behave


@define
class ChatServer:
    """What it was asked, and how it answers from now on."""

    url: str
    behave: Behave = field(factory=judging)
    questions: list[dict[str, Any]] = field(factory=list)
    headers: list[dict[str, str]] = field(factory=list)
    paths: list[str] = field(factory=list)

    def subjects(self) -> list[str]:
        """The titles of the notes it was asked about."""
        return [json.loads(q["messages"][1]["content"])["subject"]["title"] for q in self.questions]

    def shown(self, question: int = -1) -> list[str]:
        """The titles of the neighbours in one question."""
        content = json.loads(self.questions[question]["messages"][1]["content"])
        return [note["title"] for note in content["notes"]]

    async def serve(self, stream: trio.SocketStream) -> None:
        connection, body = h11.Connection(h11.SERVER), b""
        async with stream:
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    connection.receive_data(await stream.receive_some())
                elif isinstance(event, h11.Request):
                    self.headers.append({key.decode(): value.decode() for key, value in event.headers})
                    self.paths.append(event.target.decode())
                elif isinstance(event, h11.Data):
                    body += event.data
                else:
                    break
            question = json.loads(body)
            self.questions.append(question)
            with suppress(trio.BrokenResourceError):  # who asked may have heard enough
                await self.behave(stream, question)


@asynccontextmanager
async def chatting() -> AsyncIterator[ChatServer]:
    """A service for the block."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server = ChatServer(f"http://127.0.0.1:{listener.socket.getsockname()[1]}/v1")
        nursery.start_soon(trio.serve_listeners, server.serve, [listener])
        yield server
        nursery.cancel_scope.cancel()
