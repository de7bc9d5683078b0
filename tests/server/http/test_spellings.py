"""Every address in every spelling and for every right. A wrong spelling gets 404 before any token check.

The addresses come from the route tables of the running server. New routes are therefore always tested.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import httpx2
import pytest
import trio
from attrs import define, field

from lithos.kernel.values.principals import RIGHTS, Principal
from lithos.server.http import application, quart_app
from lithos.server.http.access import ADDRESSES, find_address
from lithos.server.http.gate import Gate
from tests.server.console.visiting import Visitor, make_token, visiting

#: Placeholder value for a parameter of a page address.
VALUE: Final = "x1"
METHODS: Final = ("GET", "POST", "OPTIONS", "WebSocket")
PARAMETER: Final = re.compile("<[^>]*>")


def spellings(path: str) -> Iterator[tuple[str, str]]:
    """Yield other spellings of an address. Each result has the kind of spelling and the path as sent."""
    slashes = [at for at, sign in enumerate(path) if sign == "/"]
    for at in slashes:
        yield "doubled slash", f"{path[:at]}//{path[at + 1 :]}"
        yield "tripled slash", f"{path[:at]}///{path[at + 1 :]}"
        yield "dot segment", f"{path[:at]}/./{path[at + 1 :]}"
        yield "dotted back", f"{path[:at]}/x/../{path[at + 1 :]}"
        yield "encoded dot", f"{path[:at]}/%2E/{path[at + 1 :]}"
        yield "encoded slash", f"{path[:at]}/%2F{path[at + 1 :]}"
        yield "backslash", f"{path[:at]}/\\{path[at + 1 :]}"
        if at:
            yield "encoded slash", f"{path[:at]}%2F{path[at + 1 :]}"
            yield "encoded slash", f"{path[:at]}%2f{path[at + 1 :]}"
            yield "backslash", f"{path[:at]}\\{path[at + 1 :]}"
            yield "encoded backslash", f"{path[:at]}%5C{path[at + 1 :]}"
    for at, sign in enumerate(path):
        if sign.isalnum() or sign in "-.":
            yield "encoded letter", f"{path[:at]}%{ord(sign):02X}{path[at + 1 :]}"
            yield "encoded twice", f"{path[:at]}%25{ord(sign):02X}{path[at + 1 :]}"
    for case in (path.upper(), path.title(), path.swapcase()):
        yield "case", case
    yield "trailing slash", f"{path}/"
    yield "trailing dots", f"{path}/.."
    for kind, end in (("semicolon", ";"), ("semicolon", ";x=1"), ("blank", "%20"), ("nul", "%00")):
        yield kind, path + end
    for kind, end in (("fragment", "%23"), ("question mark", "%3F"), ("broken", "%"), ("broken", "%FF")):
        yield kind, path + end
    yield "from the console", f"/console/..{path}"
    yield "whole address", f"http://localhost{path}"


@define
class Doors:
    """The gate of a running server, and the paths that the server serves."""

    gate: Gate | None = None
    paths: dict[str, None] = field(factory=dict)

    async def ask(self, method: str, path: str, headers: dict[str, str]) -> int:
        """Return the status of the answer: 101 for an accepted WebSocket."""
        assert self.gate is not None
        status = 0
        scope: dict[str, Any] = {
            "type": "websocket" if method == "WebSocket" else "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"host", b"localhost"), *((k.encode(), v.encode()) for k, v in headers.items())],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 1),
            "subprotocols": [],
            "extensions": {"websocket.http.response": {}},
        }
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if asked:
                await trio.sleep_forever()
            asked = True
            if method == "WebSocket":
                return {"type": "websocket.connect"}
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status
            if message["type"].endswith("response.start"):
                status = message["status"]
            elif message["type"] == "websocket.accept":
                status = 101
            if status:
                serving.cancel_scope.cancel()

        with trio.fail_after(60):
            async with trio.open_nursery() as serving:
                serving.start_soon(self.gate, scope, receive, send)
        return status


def watch(monkeypatch: pytest.MonkeyPatch) -> Doors:
    """Return the addresses of the next server that starts, from its route tables."""
    doors = Doors()
    create, dispatching = quart_app.create_app, application._by_path

    def created(*arguments: Any) -> Any:
        app = create(*arguments)
        doors.paths |= dict.fromkeys(rule.rule for rule in app.url_map.iter_rules())
        return app

    def dispatched(routes: Any, otherwise: Any) -> Any:
        doors.paths |= dict.fromkeys(routes)
        return dispatching(routes, otherwise)

    class Watched(Gate):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            doors.gate = self

    monkeypatch.setattr(quart_app, "create_app", created)
    monkeypatch.setattr(application, "_by_path", dispatched)
    monkeypatch.setattr(application, "Gate", Watched)
    return doors


async def guests(person: Visitor) -> dict[str, dict[str, str]]:
    """Return request headers of several guests.

    The guests are one without a token and, for each right, one with a token and one with a console session.
    """
    found: dict[str, dict[str, str]] = {"none": {}}
    for right in RIGHTS:
        secret = await make_token(person, right, right)
        async with httpx2.AsyncClient(base_url=person.url) as client:
            answer = await client.post("/console/login", data={"token": secret})
            assert answer.status_code == 303
            cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        found[right] = {"authorization": f"Bearer {secret}", "cookie": cookie}
    return found


def filled(rule: str) -> str:
    """Return an example address that matches a rule."""
    return PARAMETER.sub(VALUE, rule)


@pytest.mark.needs("access")
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.nightly)])
async def test_address_has_only_one_spelling_for_every_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """behaviour 246: tries every spelling with all rights and methods, or with one combination each."""
    doors = watch(monkeypatch)
    async with visiting(tmp_path) as person:
        await person.page("/console/")
        people = await guests(person)
        rules = [rule for rule in doors.paths if rule != "/console/<whole:rest>"]
        known = [addresses_of(rule) for rule in rules]
        counted: Counter[str] = Counter()
        for rule in rules:
            told = set()
            for kind, path in spellings(filled(rule)):
                if any(one.fullmatch(path) for one in known):
                    counted["another address"] += 1
                    continue
                address = find_address(path, console=True)
                assert address is None or address.is_console, (kind, path)
                counted[kind] += 1
                # The console's own 404 is a page. For it, one method and two guests are enough.
                ways = [(method, who) for method in METHODS for who in people]
                if address is not None:
                    ways = [(method, who) for method in ("GET", "POST") for who in ("none", "admin")]
                if not whole:
                    ways = [] if kind in told else [ways[counted[kind] % len(ways)]]
                    told.add(kind)
                for method, who in ways:
                    status = await doors.ask(method, path, people[who])
                    assert status == 404, (kind, method, path, who, status)
                    counted["asked"] += 1
        assert len(rules) > 45
        assert len(counted) == 23
        assert counted["asked"] > (30_000 if whole else 500)


def addresses_of(rule: str) -> re.Pattern[str]:
    """Return a pattern for the addresses of a rule.

    A parameter is one segment, or several if it is a path.
    """
    letter = r"(?:[^/\\%]|%(?:20|00|23|3F|25|5C))"
    segment = rf"(?!\.\.?(?:/|$)){letter}+"
    kinds = {"path": rf"{segment}(?:/{segment})*", "whole": rf"{segment}(?:%2F|{letter})*"}
    parts = re.split("(<[^>]*>)", rule)
    return re.compile(
        "".join(
            kinds.get(part[1:-1].partition(":")[0], segment) if part.startswith("<") else re.escape(part)
            for part in parts
        )
    )


@pytest.mark.needs("access", "imports")
async def test_every_served_address_is_in_the_table_of_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 201 and 246: the table contains exactly the served addresses."""
    doors = watch(monkeypatch)
    async with visiting(tmp_path) as person:
        await person.page("/console/")
        people = await guests(person)
        exact = {rule for rule in doors.paths if not rule.startswith("/console/")}
        assert exact | {"/console/"} == set(ADDRESSES)
        for path in sorted(exact):
            needs = ADDRESSES[path].needs
            for who, headers in people.items():
                method = {"/events/ws": "WebSocket", "/sse": "POST"}.get(path, "GET")
                status = await doors.ask(method, path, headers)
                if needs is None:
                    assert status in (200, 302), (path, who, status)
                elif who == "none":
                    assert status == 401, path
                elif not Principal("x", who).may(needs):  # type: ignore[arg-type]
                    assert status == 403, (path, who)
                else:
                    assert status in (200, 307, 405, 400, 101), (path, who, status)


@pytest.mark.needs("access")
async def test_metrics_right_opens_no_console_session(tmp_path: Path) -> None:
    """behaviour 387: the right `metrics` opens no page."""
    async with visiting(tmp_path) as person:
        secret = await make_token(person, "prometheus", "metrics")
        async with httpx2.AsyncClient(base_url=person.url) as client:
            page = await client.post("/console/login", data={"token": secret})
            assert page.status_code == 403
            assert not client.cookies
            assert "may only see /metrics" in page.text


@pytest.mark.needs("access")
async def test_address_with_a_double_slash_reaches_no_route(tmp_path: Path) -> None:
    """behaviour 246: a raw socket sends the request unchanged, with the right `read`."""
    async with visiting(tmp_path) as person:
        secret = await make_token(person, "reader", "read")
        host, _, port = person.url.removeprefix("http://").rpartition(":")
        key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
        for line, status in (
            ("GET /audit", 403), ("GET //audit", 404), ("GET //metrics", 404), ("GET //reconcile", 404),
            ("POST //import", 404), ("GET /%61udit", 404), ("GET /x/../audit", 404), ("GET /audit/", 404),
            ("GET http://localhost//audit", 404), ("GET //events/ws", 404), ("GET //console/undo", 404),
        ):  # fmt: skip
            more = (
                f"{key}Upgrade: websocket\r\nConnection: Upgrade\r\n"
                if "ws" in line
                else "Connection: close\r\n"
            )
            async with await trio.open_tcp_stream(host, int(port)) as stream:
                head = f"{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n{more}\r\n"
                await stream.send_all(head.encode())
                received = bytes(await stream.receive_some())
            assert received.startswith(b"HTTP/1.1 %d " % status), (line, received[:80])


def test_page_parameters_keep_spaces_slashes_and_scripts() -> None:
    for path in (
        "/console/notes/a%20b", "/console/files/pic%20ture%20(1).png", "/console/files/a/b/%C3%A4.md",
        "/console/agents/x%2Fy%0Az", "/console/agents/%25", "/console/notes/it's", "/console/agents/a%40b",
        "/console/agents/a@b:c", "/console/tasks/~x_y-z.", "/console/files/%E6%97%A5/.hidden",
    ):  # fmt: skip
        assert find_address(path, console=True) is ADDRESSES["/console/"], path
        assert find_address(path, console=False) is None, path


def test_long_address_is_matched_in_linear_time() -> None:
    """A backtracking pattern would practically never finish."""
    for part in ("a", "/a", "%C3%A4", "a%"):
        assert find_address("/console/" + part * 30_000 + "%", console=True) is None
