"""Access to every console route by GET and POST, for each right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin

import httpx2
import pytest
from attrs import frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.history.service.conflict_copies import ConflictCopies
from lithos.kernel.values.principals import RIGHTS, Rights
from lithos.server.console.console import Console
from lithos.server.service_state import Gauges
from tests.server.console.proposing import bind, propose_note
from tests.server.console.visiting import Visitor, browser, form_of, make_token, visiting
from tests.servers import Lithos, take_up

pytestmark = pytest.mark.needs("proposals", "imports", "attachments", "access", "sessions")

#: Agent that bound tokens belong to, and another agent.
MINE, OTHER = "ann", "worker"
#: Agent that may only propose changes.
PROPOSER: Final = "bot"


@frozen
class Route:
    """A console address that matches `rule`, with the rights that GET and POST need. None admits all callers.

    `get` is None for POST-only addresses. `fields` are sent in addition to the form's own fields.
    """

    rule: str
    path: str
    get: Rights | None = "read"
    post: Rights | None = None
    fields: Mapping[str, str] = {}
    #: Redirect target of a GET address that has no page.
    leads: str | None = None


def routes(made: Mapping[str, str]) -> tuple[Route, ...]:
    """Return every console route. `made` contains the ids of the prepared objects."""
    note, gone = f"/notes/{made['note']}", f"/notes/{made['gone']}"
    own, other = (f"/tasks/{made[name]}" for name in ("own", "other"))
    return (
        Route("/", "/"),
        Route("/feed", "/feed?partial=1"),
        Route("/feed", "/feed", leads="/console/"),
        Route("/state", "/state?partial=1"),
        Route("/search", "/search?q=beacon"),
        Route("/find", "/find?partial=1&q=beacon"),
        Route("/find", "/find?q=beacon", leads="/console/search?q=beacon"),
        Route("/notes", "/notes"),
        Route("/notes", "/notes?view=deleted"),
        Route("/notes/by-path", "/notes/by-path?path=beacon.md", leads=f"/console{note}"),
        Route("/notes/<note_id>", note),
        Route("/notes/<note_id>", gone),
        Route("/notes/<note_id>/diff", f"{note}/diff"),
        Route("/notes/<note_id>/restore", f"{note}/restore?version=1", "write", "write"),
        Route(
            "/notes/<note_id>/quarantine", f"{note}/quarantine", "write", "write", {"reason": "it is wrong"}
        ),
        Route("/notes/<note_id>/clear", f"{note}/clear", "write", "write"),
        Route(
            "/contradictions",
            f"/contradictions?one={made['note']}&other={made['against']}",
            "write",
            "write",
            {"ending": "refuted"},
        ),
        Route("/files/<path:path>", "/files/picture.png"),
        Route("/attachments", "/attachments"),
        Route("/attachments/<path:path>", "/attachments/nothing.pdf"),
        Route("/page-pictures/<int:page>/<path:path>", "/page-pictures/1/nothing.pdf"),
        Route("/sessions", "/sessions"),
        Route("/sessions/<name>", f"/sessions/{made['session']}"),
        Route("/sessions/<name>/remove", f"/sessions/{made['session']}/remove", "admin", "admin"),
        Route("/graph", "/graph"),
        Route("/review", "/review", "read", "admin"),
        Route("/copies", "/copies", "read"),
        Route("/care", "/care", "read", "admin"),
        Route("/copies/one", f"/copies/one?path={COPY}", "read", "admin"),
        Route(
            "/review/<proposal_id>",
            f"/review/{made['proposal']}",
            "read",
            "admin",
            {"act": "approve", "text": "# Then proposed\n\nSo be it.\n"},
        ),
        Route("/tasks", "/tasks"),
        Route("/tasks/new", "/tasks/new", "write", "write", {"title": "New"}),
        Route("/tasks/<task_id>", own),
        Route("/tasks/<task_id>", other),
        Route("/tasks/<task_id>/release", f"{own}/release?aspect=mine", "write", "write"),
        Route("/tasks/<task_id>/release", f"{other}/release?aspect=theirs", "admin", "admin"),
        Route("/tasks/<task_id>/cancel", f"{own}/cancel", "write", "write"),
        Route("/tasks/<task_id>/cancel", f"{other}/cancel", "admin", "admin"),
        Route("/tasks/<task_id>/resolve", f"/tasks/{made['own_gate']}/resolve", "write", "write"),
        Route("/tasks/<task_id>/resolve", f"/tasks/{made['other_gate']}/resolve", "admin", "admin"),
        Route("/agents", "/agents"),
        Route("/agents/<whole:agent>", f"/agents/{MINE}?show=read"),
        Route("/agents/<whole:agent>", f"/agents/{OTHER}"),
        Route("/agents/<whole:agent>", f"/agents/{OTHER}?show=write"),
        Route("/agents/<whole:agent>", f"/agents/{OTHER}?show=read", "admin"),
        Route("/agents/<whole:agent>", f"/agents/{OTHER}?show=search", "admin"),
        Route("/undo", f"/undo?agent={OTHER}&span=hour", "admin", "admin"),
        Route("/undo/<report>", "/undo/nothing", "admin"),
        Route("/receipts", "/receipts"),
        Route("/receipts/<receipt_id>", f"/receipts/{made['receipt']}"),
        Route("/receipts/<receipt_id>", f"/receipts/{made['private']}", "admin"),
        Route("/system", "/system"),
        Route("/components", "/components"),
        Route("/identity", "/identity", "read", "write", {"agent": "Zoe"}),
        Route("/<whole:rest>", "/nothing"),
        Route("/static/<path:name>", "/static/console.css", None),
        Route("/login", "/login", None, leads="/console/"),
        Route("/logout", "/logout", None),
    )


COPY: Final = "twin.sync-conflict-20260304-050607-ABCDEFG.md"
LINK: Final = re.compile(r'<a\b[^>]*\shref="([^"]+)"')
POSTED: Final = re.compile(r'<form method="post" action="([^"]+)"')
#: Routes that answer "page not found" even if the caller has the right.
MISSING: Final = frozenset({
    "/<whole:rest>", "/undo/<report>", "/attachments/<path:path>", "/page-pictures/<int:page>/<path:path>",
})  # fmt: skip
#: POST routes that begin or end a session. Other tests submit them.
SESSION_POSTS: Final = frozenset({"/login", "/logout"})


async def prepare(person: Visitor) -> dict[str, str]:
    """Create test objects of every kind, for the agent `MINE` and for another agent."""
    call = person.lithos.call
    (person.lithos.knowledge / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    note = await person.lithos.create("Beacon", "First text.", agent=OTHER)
    await person.lithos.write("Beacon", "Second text.", id=note, agent=OTHER)
    gone = await person.lithos.create("Gone", agent=OTHER)
    await call("lithos_delete", id=gone, agent=OTHER)
    await call("lithos_read", id=note, agent_id=OTHER)
    secret = await person.lithos.create(
        "Hidden lantern", "The lantern is hidden.", agent=OTHER, access_scope="agent_private"
    )
    against = await person.lithos.create("No beacon", "There is none.", agent=OTHER)
    edge = {"type": "contradicts", "weight": 1.0, "namespace": "default", "provenance_actor": OTHER}
    await call("lithos_edge_upsert", from_id=note, to_id=against, **edge)
    made = {"note": note, "gone": gone, "secret": secret, "against": against}
    for name, agent, aspect in (("own", MINE, "mine"), ("other", OTHER, "theirs")):
        made[name] = (await call("lithos_task_create", title=f"{name} task", agent=agent))["task_id"]
        await call("lithos_task_claim", task_id=made[name], aspect=aspect, agent=agent)
        more = {"task_type": "gate", "metadata": {"gate_type": "human"}}
        gate = await call("lithos_task_create", title=f"{name} gate", agent=agent, **more)
        made[f"{name}_gate"] = gate["task_id"]
    for name, query in (("receipt", "beacon text"), ("private", "hidden lantern")):
        answer = await call("lithos_retrieve", query=query, agent_id=OTHER)
        made[name] = answer["receipt_id"]
    bind(person.lithos, PROPOSER)
    await propose_note(person.lithos, "First proposed", agent=PROPOSER)
    made["proposal"] = await propose_note(person.lithos, "Then proposed", agent=PROPOSER)
    await copy_of_twin(person.lithos)
    made["session"] = await past_session(person.lithos)
    return made


async def past_session(lithos: Lithos) -> str:
    """Let the server index a transcript. Return the id of the session."""
    from lithos.sessions.files.added_folders import AddedFolder, write_added  # noqa: PLC0415 - may be left out
    from lithos.sessions.following.follower import SessionFollower  # noqa: PLC0415 - may be left out
    from lithos.sessions.model.session import session_id  # noqa: PLC0415 - may be left out
    from tests.sessions.transcripts import prompt  # noqa: PLC0415 - may be left out

    place = lithos.data.parent / f"{lithos.data.name}-transcripts"
    place.mkdir()
    (place / "past.jsonl").write_text(prompt("What did we decide?", "past"))
    write_added(lithos.data / ".lithos", [AddedFolder("other", "other", (place,))])
    await lithos.server.get(SessionFollower).caught_up()
    return session_id("claude-code", "past")


async def copy_of_twin(lithos: Lithos) -> None:
    """Create a note and a conflict copy, as if another machine had synchronised the copy."""
    twin = await lithos.create("Twin", agent=MINE)
    assert twin
    file = lithos.knowledge / "twin.md"
    (lithos.knowledge / COPY).write_bytes(file.read_bytes() + b"\nMore.\n")
    await take_up(lithos, COPY)
    assert [each.path for each in lithos.server.get(ConflictCopies).listed()] == [COPY]


@frozen
class Guest:
    """A visitor with a token: the rights of the token and the agent that it is bound to."""

    name: str
    rights: Rights
    agent: str | None


GUESTS: Final = (
    Guest("reader", "read", None),
    Guest("bound-reader", "read", MINE),
    Guest("writer", "write", None),
    Guest("bound-writer", "write", MINE),
    Guest("chief", "admin", None),
    Guest("bound-chief", "admin", MINE),
)


@asynccontextmanager
async def entered(person: Visitor, guest: Guest) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a browser that is logged in with a new token of this guest."""
    secret = await make_token(person, guest.name, guest.rights, guest.agent)
    async with browser(person.url) as client:
        answer = await client.post("/console/login", data={"token": secret, "agent": MINE})
        assert answer.status_code == 303, answer.text
        yield client


def named_right(text: str) -> set[str]:
    return {right for right in RIGHTS if f"needs the right {right}" in text}


async def watch_rules(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], None]:
    """Return the console's methods and rules. The dictionary is filled when the server starts."""
    found: dict[tuple[str, str], None] = {}
    add_routes = Console.add_routes

    def add(self: Console, app: Any) -> None:
        add_routes(self, app)
        for rule in app.url_map.iter_rules():
            if rule.rule.startswith("/console/"):
                path = rule.rule.removeprefix("/console")
                found.update({(each, path): None for each in rule.methods & {"GET", "POST", "PUT", "DELETE"}})

    monkeypatch.setattr(Console, "add_routes", add)
    return found


async def test_route_table_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """behaviour 246: the table has every route of the running console."""
    rules = await watch_rules(monkeypatch)
    async with visiting(tmp_path) as person:
        await person.page("/console/")
        told = dict.fromkeys(
            (
                "note",
                "gone",
                "own",
                "other",
                "own_gate",
                "other_gate",
                "receipt",
                "private",
                "proposal",
                "against",
                "session",
            ),
            "x",
        )
        table = {("GET", one.rule) for one in routes(told) if one.rule not in ("/logout",)}
        table |= {("POST", one.rule) for one in routes(told) if one.post}
        table |= {("POST", rule) for rule in SESSION_POSTS}
        table |= {(method, "/<whole:rest>") for method in ("POST", "PUT", "DELETE")}
    assert len(rules) > 40
    assert set(rules) == table


@pytest.mark.slow
async def test_get_requests_reach_exactly_the_pages_of_each_right(tmp_path: Path) -> None:
    """behaviour 246: read, write and admin reach exactly their pages. A refusal is 403 and names the right.

    Every reachable page shows only links and forms that the guest may use.
    """
    async with visiting(tmp_path) as person:
        made = await prepare(person)
        for guest in GUESTS:
            async with entered(person, guest) as client:
                for one in routes(made):
                    judge_get(guest, one, await client.get(f"/console{one.path}"))
                await follow_all(guest, client)


def judge_get(guest: Guest, one: Route, answer: httpx2.Response) -> None:
    if one.rule == "/logout":
        assert answer.status_code == 404, (guest, one)  # the guest sees the page for unknown addresses
    elif one.get is not None and not may(guest, one.get):
        assert answer.status_code == 403, (guest, one, answer.status_code)
        needed = one.get if guest.rights != "read" or one.rule not in OWNED else "write"
        assert named_right(answer.text) == {needed}, (guest, one)
        assert f"token {guest.name}" in answer.text
    elif one.leads is not None:
        assert (answer.status_code, answer.headers["location"]) == (302, one.leads), (guest, one)
    else:
        expected = 404 if one.rule in MISSING else 200
        assert answer.status_code == expected, (guest, one, answer.status_code, answer.text[:1500])
        if one.rule in TELLING and guest.rights == "read":
            assert f"you have read (token {guest.name})." in answer.text, (guest, one)


#: Pages that explain to readers why they cannot change anything.
TELLING: Final = frozenset({
    "/notes/<note_id>", "/tasks", "/tasks/<task_id>", "/review", "/review/<proposal_id>",
})  # fmt: skip
#: Pages for changes to one task. Task ownership is checked only if the caller has a right to change.
OWNED: Final = frozenset({"/tasks/<task_id>/release", "/tasks/<task_id>/cancel", "/tasks/<task_id>/resolve"})


def may(guest: Guest, needed: Rights) -> bool:
    return RIGHTS.index(guest.rights) >= RIGHTS.index(needed)


#: Ids and query values. They are ignored when addresses are grouped.
_DETAILS: Final = re.compile(r"(?:rcpt_)?[0-9a-f-]{12,}|(?<==)[^&]*")
#: Maximum number of similar addresses that one guest follows.
EACH: Final = 2


async def follow_all(guest: Guest, client: httpx2.AsyncClient) -> None:
    """Follow all links from page to page.

    Every link must work. Readers may see no form except the logout form.
    """
    waiting = ["/console/", "/console/notes?view=deleted", "/console/receipts"]
    seen, forms, kinds = set[str](), set[str](), Counter[str]()
    while waiting:
        path = waiting.pop(0)
        kind = _DETAILS.sub("*", path)
        kinds[kind] += 1
        if kinds[kind] > EACH:
            continue
        answer = await client.get(path, follow_redirects=True)
        assert answer.status_code in (200, 404, 409), (guest, path, answer.status_code, answer.text[-800:])
        forms |= {re.sub(r"[0-9a-f-]{36}", "ID", one) for one in POSTED.findall(answer.text)}
        for link in LINK.findall(answer.text):
            address = urljoin(str(answer.url), unescape(link)).removeprefix(str(client.base_url).rstrip("/"))
            address = address.partition("#")[0]
            if address.startswith("/console/") and "/static/" not in address and address not in seen:
                seen.add(address)
                waiting.append(address)
    assert len(kinds) > 20
    assert "/console/logout" in forms
    assert (len(forms) > 1) is (guest.rights != "read")
    assert any(one.startswith("/console/undo?") for one in seen) is (guest.rights == "admin")


@pytest.mark.parametrize("guest", GUESTS, ids=lambda guest: guest.name)
async def test_post_requests_change_only_objects_that_the_right_covers(tmp_path: Path, guest: Guest) -> None:
    """behaviours 246 and 247: a POST does what the right allows. Its author is the agent of a bound token."""
    async with visiting(tmp_path) as person:
        made = await prepare(person)
        async with browser(person.url) as owner, entered(person, guest) as client:
            # Fetch each form as an admin and submit it in the guest's session. Guests thus try every form.
            csrf = form_of((await client.get("/console/")).text, "/console/logout", all_forms=True)[1]["csrf"]
            chief_secret = await make_token(person, "forms", "admin", None)
            await owner.post("/console/login", data={"token": chief_secret, "agent": MINE})
            seen = person.lithos.server.get(Coordinator).head
            tried = 0
            for one in (each for each in routes(made) if each.post is not None):
                assert one.post is not None
                page = await owner.get(f"/console{one.path}")
                action = "/console" + one.path.partition("?")[0]
                if one.rule == "/identity":
                    _, fields = action, {"csrf": csrf, "once": "identity"}
                else:
                    _, fields = form_of(page.text, action)
                answer = await client.post(action, data={**fields, "csrf": csrf, **one.fields})
                tried += 1
                is_bound_name = one.rule == "/identity" and guest.agent is not None
                if not may(guest, one.post):
                    assert answer.status_code == 403, (one, answer.status_code)
                    needed = one.post if guest.rights != "read" or one.rule not in OWNED else "write"
                    assert named_right(answer.text) == {needed}, one
                elif is_bound_name:
                    assert answer.status_code == 403
                    assert f"is bound to the agent {MINE}" in answer.text
                else:
                    assert answer.status_code == 303, (one, answer.status_code, answer.text[-1500:])
                    assert "draft=" not in answer.headers["location"]
            assert tried >= 11
            events = list(person.lithos.server.get(Coordinator)._store.events_after(seen))
            agents = {event.draft.agent for event in events if event.draft.type != "agent.registered"}
            # an approved change has its proposer as author
            assert (PROPOSER in agents) is (guest.rights == "admin")
            agents.discard(PROPOSER)
            if guest.rights == "read":
                assert not events
            elif guest.agent is not None:
                assert agents == {MINE}
                history = await person.lithos.call("lithos_history", id=made["note"])
                assert {row["agent"] for row in history["versions"][:-2]} == {MINE}
            else:
                assert agents <= {MINE, "Zoe"}


async def test_tools_refuse_changes_even_without_page_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviours 246 and 247: tools check rights and identity independently of the pages."""
    async with visiting(tmp_path) as person:
        note = await person.lithos.create("Beacon", "First text.", agent=OTHER)
        seen = person.lithos.server.get(Coordinator).head
        for guest in (Guest("reader", "read", None), Guest("bound-writer", "write", MINE)):
            async with entered(person, guest) as client:
                csrf = form_of((await client.get("/console/")).text, "/console/logout", all_forms=True)[1][
                    "csrf"
                ]
                with monkeypatch.context() as patch:
                    patch.setattr(Console, "demand", lambda *_: None)
                    patch.setattr(Console, "agent", OTHER)
                    answer = await client.post(
                        f"/console/notes/{note}/quarantine", data={"csrf": csrf, "once": "x", "reason": "why"}
                    )
                assert answer.status_code == 403, guest
                assert guest.name in answer.text
        assert not list(person.lithos.server.get(Coordinator)._store.events_after(seen))
        metrics = (await person.lithos.server.get(Gauges).scrape()).decode()
        assert 'lithos_http_rejected_total{reason="forbidden"} 2.0' in metrics
