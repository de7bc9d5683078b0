"""Serve a vault's console below the vault's prefix: only the addresses in its answers get the prefix.

Pages and handlers know addresses as `/console/...` alone. `rebased` gives the application such requests and
moves what its answers lead to: `Location`, the path of cookies, in HTML the attributes that hold addresses.
Text is unchanged: only the attributes `ADDRESSES` count, and only within tags. That holds though the text of
a note keeps its quotes: in what the console sends, `<` begins a tag and nothing else.

The script finds its place by its own address, so it and all other files pass as they are, as streams do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from attrs import define, field

from lithos.server.http.ports import AsgiApp, Header, Message, Receive, Scope, Send

CONSOLE: Final = "/console"
#: Attributes of HTML that hold an address; `data-address` is what the script fetches.
ADDRESSES: Final = frozenset((b"href", b"src", b"action", b"formaction", b"data-address"))
#: A tag with this attribute leads out of the vault: its addresses stay.
OUTSIDE: Final = b"data-outside"
_CONSOLE: Final = CONSOLE.encode()
#: A tag, or what is there of one: values are passed over whole, so that nothing in them counts as a name.
_TAG: Final = re.compile(rb"""<[A-Za-z](?:[^<>"']++|"[^"]*+"|'[^']*+')*+>?""")
#: One attribute within a tag.
_ATTRIBUTE: Final = re.compile(rb"""([^\s"'<>/=]++)(=)?(?(2)(?:(["'])(.*?)\3|[^\s"'>]*+))""", re.DOTALL)
_NAME: Final = re.compile(rb"<[A-Za-z][^\s/>]*+")
#: Characters that may follow `/console` where it is the console's address.
_ENDS: Final = (b"", b"/", b"?", b"#")


def rebased(app: AsgiApp) -> AsgiApp:
    """The application, whose console answers below the `root_path` of a request.

    The path of such a request is without it, as the application knows it; other requests pass as they are.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        base = scope.get("root_path", "")
        if not base or scope["type"] != "http" or not _is_console(scope["path"]):
            await app(scope, receive, send)
            return
        # Quart takes a root path for a part of the path; compressed answers cannot be read here.
        headers = [line for line in scope["headers"] if line[0] != b"accept-encoding"]
        moving = _Moving(base.encode("ascii"), send, is_head=scope.get("method") == "HEAD")
        await app({**scope, "root_path": "", "headers": headers}, receive, moving.send)

    return serve


def _is_console(path: str) -> bool:
    return path in {"/", CONSOLE} or path.startswith(f"{CONSOLE}/")


@define
class _Moving:
    """The way of one answer: a page is held until it is whole, as its length changes."""

    _base: bytes
    _send: Send
    _is_head: bool = field(kw_only=True)
    _start: Message | None = field(default=None, init=False)
    _body: bytearray = field(factory=bytearray, init=False)

    async def send(self, message: Message) -> None:
        """Pass a message of the application on, now or once the page is whole."""
        if message["type"] == "http.response.start":
            headers = [self._move_header(*line) for line in message.get("headers", ())]
            message = {**message, "headers": headers}
            if _is_page(headers):
                self._start = message
                return
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_page(self._start)
            return
        await self._send(message)

    async def _send_page(self, start: Message) -> None:
        body = moved(bytes(self._body), self._base)
        kept = [line for line in start["headers"] if line[0].lower() != b"content-length"]
        # The length of a missing page cannot be known: an answer to HEAD omits it.
        if len(kept) < len(start["headers"]) and (body or not self._is_head):
            kept.append((b"content-length", b"%d" % len(body)))
        await self._send({**start, "headers": kept})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    def _move_header(self, name: bytes, value: bytes) -> Header:
        if name.lower() == b"location" and _is_address(value):
            return name, self._base + value
        if name.lower() == b"set-cookie":
            return name, b";".join(self._move_part(part) for part in value.split(b";"))
        return name, value

    def _move_part(self, part: bytes) -> bytes:
        """A part of a cookie; values of cookies hold no semicolon, so that none can pass for a path."""
        name, _, value = part.partition(b"=")
        if name.strip().lower() == b"path" and _is_address(value.strip()):
            return name + b"=" + self._base + value.strip()
        return part


def _is_page(headers: Iterable[Header]) -> bool:
    """Return whether the body is a page of the console: HTML as it is, and not a file of a user."""
    lines = {name.lower(): value.strip().lower() for name, value in headers}
    is_html = lines.get(b"content-type", b"").partition(b";")[0].strip() == b"text/html"
    return is_html and b"content-encoding" not in lines and b"content-disposition" not in lines


def moved(page: bytes, base: bytes) -> bytes:
    """The page, its addresses of the console below `base`; in time linear in its length."""
    if _CONSOLE not in page:
        return page
    return _TAG.sub(lambda found: _move_tag(found[0], base), page)


def _move_tag(tag: bytes, base: bytes) -> bytes:
    name = _NAME.match(tag)
    if name is None or _CONSOLE not in tag:
        return tag
    found = list(_ATTRIBUTE.finditer(tag, name.end()))
    if any(each[1].lower() == OUTSIDE for each in found):
        return tag
    pieces, done = list[bytes](), 0
    for each in found:
        if each[1].lower() in ADDRESSES and each[4] is not None and _is_address(each[4]):
            pieces += [tag[done : each.start(4)], base]
            done = each.start(4)
    return b"".join((*pieces, tag[done:]))


def _is_address(text: bytes) -> bool:
    return text.startswith(_CONSOLE) and text[len(_CONSOLE) :][:1] in _ENDS
