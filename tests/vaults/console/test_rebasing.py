"""Console URLs that are moved below a vault prefix. Some URLs are moved, and no text changes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
import trio

from lithos.server.http.ports import Message, Receive, Scope, Send
from lithos.vaults.http.prefixing import moved, rebased

BASE = "/v/work"
PAGE = "text/html; charset=utf-8"


async def ask(
    *bodies: bytes,
    headers: Mapping[str, str] = {"content-type": PAGE},
    cookies: tuple[str, ...] = (),
    **scope: Any,
) -> tuple[dict[str, list[str]], bytes, list[Message], Scope]:
    """Return an application's response with these headers and cookies, and the request that it received."""
    asked: list[Scope] = []
    sent: list[Message] = []
    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    lines += [(b"set-cookie", each.encode()) for each in cookies]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": lines})
        for number, body in enumerate(bodies, 1):
            await send({"type": "http.response.body", "body": body, "more_body": number < len(bodies)})

    async def receive() -> Message:
        await trio.sleep_forever()

    async def send(message: Message) -> None:
        sent.append(message)

    given = {"type": "http", "path": "/console/", "root_path": BASE, "headers": [], "method": "GET"} | scope
    await rebased(app)(given, receive, send)
    told: dict[str, list[str]] = {}
    for name, value in sent[0]["headers"]:
        told.setdefault(name.decode(), []).append(value.decode())
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return told, body, sent, asked[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<a href="/console/notes">', '<a href="/v/work/console/notes">'),
        ("<a class=id href='/console'>", "<a class=id href='/v/work/console'>"),
        ('<form action="/console/?a=1">', '<form action="/v/work/console/?a=1">'),
        ('<button formaction="/console/x">', '<button formaction="/v/work/console/x">'),
        (
            '<img alt="a > b" src="/console/files/a.png"/>',
            '<img alt="a > b" src="/v/work/console/files/a.png"/>',
        ),
        ('<div data-address="/console/state">', '<div data-address="/v/work/console/state">'),
        ('<a\nHREF="/console#x">', '<a\nHREF="/v/work/console#x">'),
    ],
)
def test_urls_in_attributes_are_moved_below_the_prefix(before: str, after: str) -> None:
    """behaviour 293"""
    assert moved(before.encode(), b"/v/work").decode() == after


@pytest.mark.parametrize(
    "text",
    [
        '<p>"/console/x" and `/console/x` and href="/console/x"</p>',
        '<textarea name="text">&#34;/console/x&#34; "/console/x" \'/console/x\'</textarea>',
        '<input name="next" value="/console/notes">',
        '<bdi title="/console/notes">/console/notes</bdi>',
        '<bdi title=" href=\'/console/x\' > ">x</bdi>',
        '<a href="/consoles/x">', '<a href="https://example.org/console/x">', '<a href="?note=/console/x">',
        '<a data-outside href="/console/">All vaults</a>',
        "a < b href=\"/console/x\"", '<!-- href="/console/x" -->', "<", '<a href="/console/x',
    ],
)  # fmt: skip
def test_text_and_attributes_without_urls_are_unchanged(text: str) -> None:
    """behaviour 293"""
    assert moved(text.encode(), b"/v/work").decode() == text


def test_rewrite_time_is_linear_in_the_page_length() -> None:
    """A page of ten times the length takes about ten times as long, independent of its content."""
    for piece in (b'<a "', b"<a '", b"<a \"' '", b'<a x="/console" ', b'<a x="', b"</console <a"):

        def seconds(count: int, piece: bytes = piece) -> float:
            page = piece * count + b"/console"
            begun = time.thread_time()
            moved(page, b"/v/work")
            return time.thread_time() - begun

        assert min(seconds(20_000) for _ in range(3)) < 60 * max(min(seconds(2_000) for _ in range(3)), 1e-4)


async def test_page_sent_in_pieces_is_rewritten_with_the_correct_length() -> None:
    page = '<a href="/console/ä">ä</a>'.encode()
    headers = {"content-type": PAGE, "content-length": str(len(page))}
    told, body, sent, _ = await ask(page[:10], page[10:12], page[12:], headers=headers)
    assert body.decode() == '<a href="/v/work/console/ä">ä</a>'
    assert told["content-length"] == [str(len(body))]
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]


async def test_head_response_does_not_state_an_incorrect_length() -> None:
    told, body, _, _ = await ask(b"", headers={"content-type": PAGE, "content-length": "26"}, method="HEAD")
    assert (body, "content-length" in told) == (b"", False)


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/event-stream"},
        {"content-type": "application/javascript", "content-length": "54"},
        {"content-type": "application/json"},
        {"content-type": PAGE, "content-disposition": "attachment"},
        {"content-type": PAGE, "content-encoding": "gzip"},
    ],
)
async def test_other_content_is_not_rewritten(headers: dict[str, str]) -> None:
    pieces = (b'<a href="/console/x">', b"data: '/console/x'\n\n", b"`/console/x`")
    told, body, sent, _ = await ask(*pieces, headers=headers)
    assert body == b"".join(pieces)
    assert [message.get("body") for message in sent[1:]] == list(pieces)
    assert {name: values[0] for name, values in told.items()} == headers


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/console/", "/v/work/console/"),
        ("/console", "/v/work/console"),
        ("/console/login?next=/console/notes%3Fq%3D1", "/v/work/console/login?next=/console/notes%3Fq%3D1"),
        ("/consoles", "/consoles"),
        ("https://client.example/console/", "https://client.example/console/"),
        ("?q=1", "?q=1"),
    ],
)
async def test_redirects_to_the_console_are_moved_below_the_prefix(before: str, after: str) -> None:
    told, *_ = await ask(b"", headers={"location": before})
    assert told["location"] == [after]


async def test_cookies_belong_to_the_console_of_their_vault() -> None:
    """A browser must not send the session of one vault to another vault or to a single-vault server."""
    told, *_ = await ask(b"", cookies=("a=/console; HttpOnly; Path=/console; SameSite=Strict", "b=1; path=/"))
    assert told["set-cookie"] == [
        "a=/console; HttpOnly; Path=/v/work/console; SameSite=Strict",
        "b=1; path=/",
    ]


async def test_application_receives_the_request_without_the_prefix() -> None:
    headers = [(b"host", b"h"), (b"accept-encoding", b"gzip"), (b"origin", b"http://h")]
    *_, asked = await ask(b"", headers={"content-type": PAGE})
    assert asked["root_path"] == ""
    *_, asked = await ask(b"", headers={"content-type": PAGE}, path="/")
    assert asked["root_path"] == ""
    given = {"type": "http", "path": "/console/x", "root_path": BASE, "headers": headers}
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    await rebased(app)(given, trio.sleep_forever, trio.sleep)  # type: ignore[arg-type]
    assert seen[0]["headers"] == [(b"host", b"h"), (b"origin", b"http://h")]
    assert given["root_path"] == BASE


@pytest.mark.parametrize(
    "scope",
    [{"root_path": ""}, {"path": "/events"}, {"path": "/consoles"}, {"path": "/sse"}, {"type": "websocket"}],
)
async def test_responses_to_other_requests_are_not_rewritten(scope: dict[str, Any]) -> None:
    page = b'<a href="/console/x">'
    told, body, _, asked = await ask(page, headers={"content-type": PAGE, "location": "/console/"}, **scope)
    assert (body, told["location"]) == (page, ["/console/"])
    assert asked["root_path"] == scope.get("root_path", BASE)
