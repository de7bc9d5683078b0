"""End of the process or power failure at each system call that writes grants, clients or login links."""

from __future__ import annotations

import base64
import errno
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import pytest
import trio
from attrs import define, field

from lithos.access.files.login_links import LoginLinks
from lithos.access.files.tokens import TokenStore
from lithos.access.model.requests import OAuthRefused
from lithos.access.service.authorization import Allowed, AuthorizationServer
from lithos.access.service.keyring import TokenRing
from tests.crashpoints.disk import build
from tests.crashpoints.recording import Recorder, recording
from tests.crashpoints.sweep import CRASHES
from tests.servers import Clock

ADDRESS = "https://notes.example.org"
CALLBACK = "https://client.example/callback"
VERIFIER = "v" * 50
FILES = ("tokens.json", "oauth_clients.json", "login_links.json")
LOCKS = {"tokens.lock", "oauth_clients.lock", "login_links.lock"}
Files = dict[str, bytes | None]
T = TypeVar("T")


def files_of(private: Path) -> Files:
    return {name: path.read_bytes() if (path := private / name).exists() else None for name in FILES}


@define
class Server:
    """Authorization server on a private folder, created as at a start of Lithos."""

    private: Path
    clock: Clock
    ring: TokenRing
    oauth: AuthorizationServer

    @classmethod
    async def start(cls, private: Path, clock: Clock) -> Server:
        ring = TokenRing(private, clock, asks_always=True)
        await ring.follow()
        return cls(private, clock, ring, AuthorizationServer(ADDRESS, private, ring, clock))

    async def register(self) -> str:
        told = await self.oauth.register({"redirect_uris": [CALLBACK], "client_name": "C"}, "192.0.2.1")
        return str(told["client_id"])

    async def allow(self, client: str) -> str:
        """Grant access to a client. Return the code."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
        given = {
            "response_type": "code",
            "client_id": client,
            "redirect_uri": CALLBACK,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        place = await self.oauth.allow(await self.oauth.examine(given), Allowed("ann", "write", None))
        return dict(parse_qsl(urlsplit(place).query))["code"]

    async def exchange(self, client: str, code: str) -> dict[str, Any]:
        given = {"grant_type": "authorization_code", "code": code, "client_id": client}
        return await self.oauth.issue({**given, "redirect_uri": CALLBACK, "code_verifier": VERIFIER})

    async def refresh(self, client: str, told: dict[str, Any]) -> dict[str, Any]:
        given = {"grant_type": "refresh_token", "refresh_token": told["refresh_token"], "client_id": client}
        return await self.oauth.issue(given)

    def lets_in(self, secret: str) -> bool:
        return self.ring.find(secret.encode()) is not None


#: Function that repeats a client's token request after a crash.
Again = Callable[[Server], Awaitable[dict[str, Any]]]


@define
class Step:
    """An answered request, and the secrets that are valid or invalid after it."""

    name: str
    begin: int
    end: int
    files: Files
    good: frozenset[str]
    bad: frozenset[str]
    #: Request to send after a crash during this step, and whether it must work before and after the change.
    again: Again | None = None
    works: tuple[bool, bool] = (True, False)
    #: Request to send after a crash that follows the answer. The request must work.
    then: Again | None = None


@define
class Play:
    """Recorded requests to a server by clients, a person and a command."""

    recorder: Recorder
    private: Path
    clock: Clock = field(factory=Clock)
    steps: list[Step] = field(factory=list)
    good: set[str] = field(factory=set)
    bad: set[str] = field(factory=set)

    async def step(self, name: str, act: Awaitable[T], again: Again | None = None, **more: Any) -> T:
        begin = len(self.recorder.log)
        said = await act
        end = len(self.recorder.log)
        assert end > begin, name
        state = files_of(self.private), frozenset(self.good), frozenset(self.bad)
        self.steps.append(Step(name, begin, end, *state, again, **more))
        return said

    def note(self, *, good: tuple[str, ...] = (), bad: tuple[str, ...] = ()) -> None:
        """Record the secrets that became valid or invalid by the last step."""
        self.good = (self.good | set(good)) - set(bad)
        self.bad |= set(bad)
        self.steps[-1].good, self.steps[-1].bad = frozenset(self.good), frozenset(self.bad)

    async def run(self) -> None:
        server = await Server.start(self.private, self.clock)
        store, links = TokenStore(self.private), LoginLinks(self.private)
        aside = trio.to_thread.run_sync
        key = await self.step("link", aside(links.make, self.clock()))
        assert await self.step("log in", server.oauth.take_link(key))
        ada = await self.step("register", server.register())
        code = await self.step("allow", server.allow(ada))
        self.steps[-1].then = lambda now: now.exchange(ada, code)
        first = await self.step("exchange", server.exchange(ada, code), lambda now: now.exchange(ada, code))
        self.note(good=(first["access_token"],))
        create = partial(store.create, "static", "read", "ann", self.clock(), None)
        _, static = await self.step("a command", aside(create))
        await server.ring.follow()
        self.note(good=(static,))
        second = await self.step(
            "refresh", server.refresh(ada, first), lambda now: now.refresh(ada, first), works=(True, True)
        )
        self.steps[-1].then = lambda now: now.refresh(ada, second)
        self.note(good=(second["access_token"],))
        bob = await self.step("register", server.register())
        codes = [await self.step("allow", server.allow(bob)) for _ in range(2)]
        others = []
        for each in codes:
            others.append(await self.step("exchange", server.exchange(bob, each)))
            self.note(good=(others[-1]["access_token"],))
        mine = {"token": second["refresh_token"], "client_id": ada}
        await self.step("give back", server.oauth.revoke(mine), lambda now: now.refresh(ada, second))
        self.note(bad=(first["access_token"], second["access_token"]))
        await self.step("throw out", server.oauth.throw_out("c-2"), lambda now: now.refresh(bob, others[0]))
        self.note(bad=(others[0]["access_token"],))
        await self.step(
            "replay", refused(server.exchange(bob, codes[1])),
            lambda now: now.exchange(bob, codes[1]), works=(False, False),
        )  # fmt: skip
        self.note(bad=(others[1]["access_token"],))


async def refused(act: Awaitable[Any]) -> str:
    with pytest.raises(OAuthRefused) as refusal:
        await act
    return refusal.value.error


async def record(private: Path) -> Play:
    private.mkdir()
    with recording(private) as recorder:
        play = Play(recorder, private)
        await play.run()
    return play


async def check(play: Play, point: int, private: Path) -> None:
    """Start a server on the files after a crash. Raise `AssertionError` with the difference."""
    acknowledged = sum(step.end <= point for step in play.steps)
    begun = sum(step.begin < point for step in play.steps)
    nothing = Step("nothing", 0, 0, dict.fromkeys(FILES), frozenset(), frozenset())
    possible = [nothing, *play.steps][acknowledged : begun + 1]
    found = files_of(private)
    state = next((step for step in possible if step.files == found), None)
    assert state is not None, f"the files are neither as before nor as after {possible[-1].name}"
    server = await Server.start(private, play.clock)
    if server.ring.trouble is not None:  # for example, the file is missing until the first grant is written
        assert found["tokens.json"] is None
    assert all(map(server.lets_in, state.good)), "what was answered is lost"
    untold = (play.good | play.bad) - possible[0].good - possible[-1].good - possible[-1].bad
    assert not any(map(server.lets_in, untold)), "what was not answered yet lets in"
    assert not any(map(server.lets_in, state.bad)), "what was revoked lets in"
    await go_on(server, possible, state)
    left = {path.name for path in private.iterdir()} - LOCKS - set(FILES)
    assert left <= {f"{name}.new" for name in FILES[1:]}, f"left behind: {left}"


async def go_on(server: Server, possible: list[Step], state: Step) -> None:
    """Repeat the interrupted request. Other clients must still get access."""
    last = possible[-1]
    is_answered = len(possible) == 1
    works, send = (True, last.then) if is_answered else (last.works[state is last], last.again)
    if send is not None and works:
        assert server.lets_in((await send(server))["access_token"])
    elif send is not None:
        assert await refused(send(server)) == "invalid_grant"
    client = await server.register()
    told = await server.exchange(client, await server.allow(client))
    assert server.lets_in(told["access_token"])
    assert server.ring.trouble is None


def crashes(play: Play, mode: str) -> Iterator[tuple[int, Any]]:
    for point, disk in play.recorder.replay():
        yield point, CRASHES[mode](disk, Random(f"{mode} {point}"))


@pytest.mark.parametrize("mode", CRASHES)
async def test_crash_at_any_call_damages_no_grant_or_file(mode: str, tmp_path: Path) -> None:
    """behaviour 273: answers are durable before they are sent. No crash duplicates or revives a grant."""
    play = await record(tmp_path / "private")
    points = 0
    for point, image in crashes(play, mode):
        target = tmp_path / f"{point}"
        build(image, target)
        try:
            await check(play, point, target)
        except Exception as failure:
            done = play.recorder.names[point - 1] if point else "nothing"
            raise AssertionError(f"after call {point}, {done}: {failure}") from failure
        points += 1
    assert points == len(play.recorder.log) + 1 > 5 * len(play.steps)
    print(f"{mode}: {points} points of {len(play.steps)} requests")  # noqa: T201 - for `pytest -s`


async def test_failed_call_is_reported_and_keeps_earlier_grants(tmp_path: Path) -> None:
    """behaviour 273: on a failing disk, the answer reports the failure. Earlier answers stay valid."""
    private = tmp_path / "private"
    private.mkdir()
    clock = Clock()
    with recording(private) as recorder:
        server = await Server.start(private, clock)
        client = await server.register()
        told = await server.exchange(client, await server.allow(client))
        before = recorder.asked
        told = await server.refresh(client, told)
        calls = recorder.asked - before
        assert calls > 3
        for place in range(calls):
            recorder.failing = {recorder.asked + place: (errno.ENOSPC, errno.EIO)[place % 2]}
            assert await refused(server.refresh(client, told)) == "temporarily_unavailable"
            recorder.failing = {}
            again = await Server.start(private, clock)
            assert again.ring.trouble is None
            assert server.lets_in(told["access_token"])
            assert again.lets_in(told["access_token"])
            told = await server.refresh(client, told)
            assert server.lets_in(told["access_token"])
    assert len(recorder.failed) == calls
