"""Rewriting of console addresses in a vault's responses, which adds the URL prefix of the vault.

Pages and handlers only contain addresses such as `/console/...`. `rebased` rewrites the addresses in
responses: the `Location` header, cookie paths, and the HTML attributes in `ADDRESSES`. Only attributes inside
tags are rewritten, so text is never changed. Quotes in the text of a note are harmless, because in the
console's HTML `<` always starts a tag.

The console's script derives the prefix from its own URL. Scripts, other files and streams are therefore not
changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from attrs import define, field

from lithos.server.http.ports import AsgiApp, Header, Message, Receive, Scope, Send

CONSOLE: Final = "/console"
#: HTML attributes that contain an address. The console's script fetches the address in `data-address`.
ADDRESSES: Final = frozenset((b"href", b"src", b"action", b"formaction", b"data-address"))
#: Attribute of tags whose links lead out of the vault. Their addresses are not changed.
OUTSIDE: Final = b"data-outside"
_CONSOLE: Final = CONSOLE.encode()
#: A complete or truncated tag. Attribute values are skipped as a whole, because text in them must not match
#: as an attribute name.
_TAG: Final = re.compile(rb"""<[A-Za-z](?:[^<>"']++|"[^"]*+"|'[^']*+')*+>?""")
#: One attribute inside a tag.
_ATTRIBUTE: Final = re.compile(rb"""([^\s"'<>/=]++)(=)?(?(2)(?:(["'])(.*?)\3|[^\s"'>]*+))""", re.DOTALL)
_NAME: Final = re.compile(rb"<[A-Za-z][^\s/>]*+")
#: Characters that may follow `/console` in a console address.
_ENDS: Final = (b"", b"/", b"?", b"#")


def rebased(app: AsgiApp) -> AsgiApp:
    """Return an application whose console responds below the `root_path` of a request.

    The application gets the path of such a request without the prefix. Other requests pass unchanged.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        base = scope.get("root_path", "")
        if not base or scope["type"] != "http" or not _is_console(scope["path"]):
            await app(scope, receive, send)
            return
        # Quart treats a root path as part of the path. Compressed responses could not be rewritten.
        headers = [line for line in scope["headers"] if line[0] != b"accept-encoding"]
        moving = _Moving(base.encode("ascii"), send, is_head=scope.get("method") == "HEAD")
        await app({**scope, "root_path": "", "headers": headers}, receive, moving.send)

    return serve


def _is_console(path: str) -> bool:
    return path in {"/", CONSOLE} or path.startswith(f"{CONSOLE}/")


@define
class _Moving:
    """The state of one response.

    A page is buffered until it is complete, because the rewriting changes its length.
    """

    _base: bytes
    _send: Send
    _is_head: bool = field(kw_only=True)
    _start: Message | None = field(default=None, init=False)
    _body: bytearray = field(factory=bytearray, init=False)

    async def send(self, message: Message) -> None:
        """Send a message of the application: immediately, or after the page is complete."""
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
        # The response to HEAD omits the length, because the rewritten length is unknown without the page.
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
        """Rewrite one attribute of a cookie.

        Cookie values contain no semicolon, so a value cannot be mistaken for a path.
        """
        name, _, value = part.partition(b"=")
        if name.strip().lower() == b"path" and _is_address(value.strip()):
            return name + b"=" + self._base + value.strip()
        return part


def _is_page(headers: Iterable[Header]) -> bool:
    """Return whether the body is an uncompressed HTML page of the console rather than a user's file."""
    lines = {name.lower(): value.strip().lower() for name, value in headers}
    is_html = lines.get(b"content-type", b"").partition(b";")[0].strip() == b"text/html"
    return is_html and b"content-encoding" not in lines and b"content-disposition" not in lines


def moved(page: bytes, base: bytes) -> bytes:
    """Return the page with `base` before all console addresses. Takes time linear in the page's length."""
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
