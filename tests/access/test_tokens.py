"""Console login with named tokens: end of sessions, wrong tokens, and the token list."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
import trio

from lithos.access.service.keyring import TokenRing
from lithos.events.journal.coordinator import Coordinator
from lithos.server.http.admissions import MOST_WRONG
from lithos.server.service_state import Gauges
from tests.server.console.pages import check
from tests.server.console.visiting import (
    PATIENCE,
    Visitor,
    browser,
    form_of,
    make_token,
    revoke_token,
    visiting,
)
from tests.servers import Clock

TOKEN = "a-token-of-tests"


async def log_in(person: Visitor, secret: str, name: str = "") -> httpx2.Response:
    answer = await person.client.post("/console/login", data={"token": secret, "agent": name})
    assert answer.status_code == 303, answer.text
    return answer


async def who(person: Visitor, path: str = "") -> str:
    """Return the text at the bottom of the navigation bar."""
    return (await person.look(f"/console/{path}")).all("div", "who")[0].told.removeprefix("Keys ? ")


async def csrf_of(person: Visitor) -> str:
    return form_of(await person.page("/console/"), "/console/logout", all_forms=True)[1]["csrf"]


async def test_every_page_shows_the_name_and_rights_of_the_token(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        assert (await who(person)) == "person"
        reader = await make_token(person, "ci", "read", "ci-bot")
        chief = await make_token(person, "boss", "admin")
        for secret, told in (
            (reader, "ci-bot token ci , read Log out"),
            (chief, "Ann token boss , admin Log out"),
        ):
            person.client.cookies.clear()
            await log_in(person, secret, "Ann")
            for path in ("", "notes", "tasks", "system"):
                assert await who(person, path) == told
        assert (await who(person)).startswith("Ann")
        person.client.cookies.clear()
        await log_in(person, chief)
        assert (await who(person)).startswith("person")


async def test_page_explains_why_the_agent_name_is_fixed(tmp_path: Path) -> None:
    """behaviour 247: a token that is bound to an agent cannot act as another agent."""
    async with visiting(tmp_path) as person:
        call = person.lithos.call
        await log_in(person, await make_token(person, "ci", "admin", "ci-bot"), "Mallory")
        first = await person.page("/console/")
        assert "The token ci is bound to the agent ci-bot" in first
        assert "not recorded as Mallory" in first
        identity = await person.page("/console/identity")
        check(identity)
        assert (
            "The token ci is bound to the agent ci-bot. Your changes are recorded under that name."
            in identity
        )
        assert 'action="/console/identity"' not in identity
        created = await person.submit("/console/tasks/new", title="Of the bot")
        task = str(created.url).rpartition("/")[2]
        row = (await call("lithos_task_get", task_id=task))["task"]
        assert row["created_by"] == "ci-bot"
        note = await person.lithos.create("Beacon", "One.", agent="worker")
        await person.lithos.write("Beacon", "Two.", id=note, agent="worker")
        await person.submit(f"/console/notes/{note}/restore?version=1")
        history = await call("lithos_history", id=note)
        assert [one["agent"] for one in history["versions"]] == ["ci-bot", "worker", "worker"]
        await person.page(f"/console/notes/{note}")
        assert ("ci-bot", note, "read") in await person.lithos.audit()
        mine = [
            one.draft
            for one in person.lithos.server.get(Coordinator)._store.events_after(person.lithos.first_seq)
        ]
        told = {(one.type, one.agent) for one in mine if one.agent != "worker"}
        assert told == {("task.created", "ci-bot"), ("task.ready", "ci-bot"), ("note.updated", "ci-bot")}


async def test_reads_by_other_agents_are_shown_only_to_admins(tmp_path: Path) -> None:
    """behaviour 246: /audit and the console views of the same data need the right `admin`."""
    async with visiting(tmp_path) as person:
        note = await person.lithos.create("Beacon", "One.", agent="worker")
        await person.lithos.call("lithos_read", id=note, agent_id="worker")
        await person.lithos.audit()
        tokens = {name: await make_token(person, name, name) for name in ("read", "write", "admin")}
        for name, secret in tokens.items():
            person.client.cookies.clear()
            await log_in(person, secret, "ann")
            one, everybody = await person.page("/console/agents/worker"), await person.page("/console/agents")
            is_told = name == "admin"
            assert ('<span class="verb">read</span>' in one) is is_told
            assert ("Reads and searches of this agent are not shown." in one) is not is_told
            assert ("?show=read" in one) is is_told
            assert ("other agents read or found" in everybody) is not is_told


async def test_tokens_are_listed_to_admins_without_hashes(tmp_path: Path) -> None:
    """behaviour 248: hashes are only on disk. No page, cookie, log or error contains a token."""
    async with visiting(tmp_path) as person:
        secrets = {
            "ci": await make_token(person, "ci", "read", "ci-bot"),
            "boss": await make_token(person, "boss", "admin"),
        }
        digests = [token.digest for token in person.lithos.server.get(TokenRing).named]
        await log_in(person, secrets["ci"])
        hidden = await person.page("/console/system")
        assert "Tokens are not shown. This needs the right admin" in hidden
        assert "boss" not in hidden
        person.client.cookies.clear()
        await log_in(person, secrets["boss"])
        shown = await person.page("/console/system")
        check(shown)
        table = shown[shown.index('id="tokens"') : shown.index('id="configuration"')]
        rows = re.findall(r"<tr><td><bdi>(\w+)</bdi></td><td>(\w+)</td>", table)
        assert rows == [("ci", "read"), ("boss", "admin")]
        assert "ci-bot" in table
        for secret in (*secrets.values(), *digests, person.lithos.server.get(TokenRing).own_token):
            assert secret not in hidden + shown


async def test_token_does_not_appear_in_pages_logs_or_metrics(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """behaviour 248: covers pages, cookies, logs, metrics and errors."""
    caplog.set_level(logging.DEBUG)
    async with visiting(tmp_path) as person:
        right = await make_token(person, "ci", "write", "ci-bot")
        wrong = "wrong-" + right
        told = ""
        refused = await person.submit("/console/login", token=wrong, agent="Ann")
        assert refused.status_code == 401
        told += refused.text + str(refused.headers)
        answer = await log_in(person, right)
        told += answer.text + str(answer.headers) + str(dict(person.client.cookies))
        assert "HttpOnly" in answer.headers["set-cookie"]
        for path in ("", "identity", "system?run=1", "agents", "undo"):
            page = await person.get(f"/console/{path}")
            told += page.text + str(page.headers)
        told += (await person.post("/console/identity", csrf="x", once="y", agent=right[:5])).text
        told += str(await person.lithos.server.get(Gauges).scrape())
        await revoke_token(person, "ci")
        await ended(person)
        told += (await person.get("/console/")).text
        told += caplog.text + repr(person.lithos.server.get(TokenRing)) + "".join(map(repr, caplog.records))
        assert right not in told
        assert wrong not in told
        for name in ("tokens.json", "tokens.lock"):
            assert right not in (tmp_path / ".lithos" / name).read_text()


async def ended(person: Visitor) -> httpx2.Response:
    """Wait until the console redirects to the login. Return that response."""
    with trio.fail_after(PATIENCE):
        while (answer := await person.client.get("/console/notes")).status_code == 200:
            await trio.sleep(0.05)
    assert answer.status_code == 302
    return answer


async def test_revoked_token_ends_its_session_and_feed(tmp_path: Path) -> None:
    """behaviour 248: revocation ends sessions and closes open streams within 2 s.

    Other tokens remain valid.
    """
    async with visiting(tmp_path) as person:
        await log_in(person, await make_token(person, "ci", "write"))
        csrf = await csrf_of(person)
        async with browser(person.url) as other:
            secret = await make_token(person, "boss", "admin")
            await other.post("/console/login", data={"token": secret})
            async with (
                person.client.stream("GET", "/console/events") as mine,
                other.stream("GET", "/console/events") as theirs,
            ):
                assert (mine.status_code, theirs.status_code) == (200, 200)
                await revoke_token(person, "ci")
                await read_to_end(mine)
                await person.lithos.create("Beacon")
                assert (await other.get("/console/notes")).status_code == 200
                await revoke_token(person, "boss")
                assert b"event: note.created" in await read_to_end(theirs)
        answer = await ended(person)
        login = await person.get(answer.headers["location"])
        assert "Your session has ended: the token ci was revoked" in login.text
        late = await person.client.post("/console/identity", data={"csrf": csrf, "once": "x", "agent": "y"})
        assert late.status_code == 401
        assert "the token ci was revoked" in late.text
        assert (await person.client.get("/console/events")).status_code == 401


async def read_to_end(stream: httpx2.Response) -> bytes:
    """Return all events until the stream ends, with or without an error."""
    heard = b""
    with trio.fail_after(PATIENCE), suppress(httpx2.RemoteProtocolError):
        async for part in stream.aiter_bytes():
            heard += part
    return heard


async def test_feed_ends_at_logout(tmp_path: Path) -> None:
    async with visiting(tmp_path, token=TOKEN) as person:
        await log_in(person, TOKEN)
        csrf = await csrf_of(person)
        async with person.client.stream("GET", "/console/events") as stream:
            await person.client.post("/console/logout", data={"csrf": csrf})
            await read_to_end(stream)


async def test_first_token_ends_sessions_and_feeds_that_are_open(tmp_path: Path) -> None:
    """A login is required as soon as a token exists, even if the server is already running."""
    async with visiting(tmp_path) as person:
        assert "Log out" not in await person.page("/console/")
        async with person.client.stream("GET", "/console/events") as stream:
            secret = await make_token(person, "boss", "admin")
            await read_to_end(stream)
        answer = await person.client.get("/console/tasks")
        assert (answer.status_code, answer.headers["location"]) == (302, "/console/login?next=/console/tasks")
        login = await person.get(answer.headers["location"])
        assert "this server requires a token now" in login.text
        await log_in(person, secret)
        assert "Log out" in await person.page("/console/tasks")


async def test_session_ends_when_its_token_expires(tmp_path: Path) -> None:
    clock = Clock()
    async with visiting(tmp_path, clock=clock) as person:
        secret = await make_token(person, "ci", "read", expires_at=clock() + timedelta(hours=1))
        await log_in(person, secret)
        await person.page("/console/")
        clock.advance(hours=1)
        assert (await person.client.get("/console/")).status_code == 302
        assert (await person.client.post("/console/login", data={"token": secret})).status_code == 401


async def test_wrong_tokens_in_logins_and_headers_share_one_limit(tmp_path: Path) -> None:
    """After 20 wrong tokens a minute from one address, the status is 429 instead of 401.

    A correct token is always accepted.
    """
    async with visiting(tmp_path, token=TOKEN) as person:
        for number in range(MOST_WRONG):
            if number % 2:
                answer = await person.client.get("/events", headers={"Authorization": "Bearer wrong"})
            else:
                answer = await person.client.post("/console/login", data={"token": "wrong"})
            assert answer.status_code == 401, number
        answer = await person.client.post("/console/login", data={"token": "wrong"})
        assert answer.status_code == 429
        assert 0 < int(answer.headers["retry-after"]) <= 60
        assert "Too many wrong tokens" in answer.text
        bearer = await person.client.get("/events", headers={"Authorization": "Bearer wrong"})
        assert bearer.status_code == 429
        await log_in(person, TOKEN)
        metrics = (await person.lithos.server.get(Gauges).scrape()).decode()
        counted = dict(re.findall(r'lithos_http_rejected_total\{reason="(\w+)"\} (\S+)', metrics))
        assert (counted["unauthorized"], counted["too_many_wrong_tokens"]) == ("20.0", "2.0")
