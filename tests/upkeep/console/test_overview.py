"""Overview: health, the live feed and its gaps, work, and concerns (docs/spec/console.md §2)."""

from __future__ import annotations

import errno
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio
from markupsafe import Markup

from docs.interface import EVENTS
from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.values.events import Event, EventDraft
from lithos.server.console.formats import make_environment
from lithos.upkeep.console import overview
from lithos.upkeep.console.overview import MOST_KEPT, TYPES, ActivityRow, EventFeed, FeedFilter, fold
from tests.e2e.faults.injection import failing_fsync
from tests.server.console.pages import Element, check, dangers, parse
from tests.server.console.proposing import bind, decide, propose, propose_note, propose_text
from tests.server.console.visiting import Visitor, visiting
from tests.server.running import read_until
from tests.servers import VAULT, put_note

START = datetime(2026, 1, 1, tzinfo=UTC)
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\u202egnp'


def rows_of(page: Element) -> list[Element]:
    return page.all("li", "event")


def sentences_of(page: Element) -> list[str]:
    """Return the sentences of the feed, newest first."""
    return [row.all("span", "told")[0].text for row in rows_of(page)]


def head_of(page: Element) -> str:
    (feed,) = page.has("data-head")
    return feed.attributes["data-head"]


async def piece(person: Visitor, query: str = "", name: str = "feed") -> Element:
    return parse(await person.page(f"/console/{name}?partial=1{query}"))


async def told(person: Visitor, query: str = "") -> list[str]:
    return sentences_of(await piece(person, query))


async def looked_through(person: Visitor) -> Element:
    """Return the overview after all notes have been checked."""
    while "being checked" in (page := await person.look("/console/")).text:
        pass
    return page


class NoNotes:
    def get(self, _: str) -> None:
        return None


def of_no_notes() -> EventFeed:
    return EventFeed(make_environment(), NoNotes())  # type: ignore[arg-type]


async def test_each_event_type_is_shown_as_a_sentence_with_links(tmp_path: Path) -> None:
    """behaviour 235: every page renders with an empty vault."""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        await lithos.server.searchable()
        page = await looked_through(person)
        assert [each.text for each in page.all("h1")] == ["Overview"]
        assert [each.text for each in page.all("p", "sentence")] == ["Everything is healthy."]
        assert rows_of(page) == []
        assert "Nothing has happened yet." in page.text
        assert "No agent was active in the last hour." in page.text
        assert head_of(page) == str(lithos.server.get(Coordinator).head)
        one = await lithos.create("First note", agent="ann", tags=["raft"])
        two = await lithos.create("Second note", agent="bob")
        await lithos.call("lithos_edge_upsert", from_id=one, to_id=two, type="supports", weight=1.0,
                          namespace="default", provenance_actor="bob")  # fmt: skip
        task = (await lithos.call("lithos_task_create", title="A task", agent="ann"))["task_id"]
        await lithos.call("lithos_task_claim", task_id=task, aspect="review", agent="bob")
        await lithos.call("lithos_finding_post", task_id=task, agent="bob", summary="It works.",
                          knowledge_id=two)  # fmt: skip
        await lithos.call("lithos_task_complete", task_id=task, agent="bob", outcome="Done well.")
        await lithos.call("lithos_delete", id=one, agent="ann")
        page = await person.look("/console/")
        rows = rows_of(page)
        assert sentences_of(page)[::-1] == [
            "ann wrote First note +1 raft",
            "bob wrote Second note +1",
            f"bob connected {one[:8]} → Second note supports",
            "ann created task A task",
            "bob claimed review of A task",
            "bob posted a finding about A task in Second note It works.",
            "bob completed A task Done well.",
            "ann deleted first-note.md raft",
        ]
        links = [[link.attributes["href"] for link in row.all("a")] for row in rows]
        assert links[-1] == [
            "/console/agents/ann", f"/console/notes/{one}", "/console/notes?tags=raft",
            f"/console/undo?agent=ann&note={one}&version=1",
        ]  # fmt: skip
        assert links[-5] == ["/console/agents/bob", f"/console/tasks/{task}"]
        assert all(row.all("time") for row in rows)


@pytest.mark.needs("proposals")
async def test_proposal_outcomes_are_shown_with_links(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        note = await lithos.create("Plan", "one", agent="ann")
        bind(lithos)
        ids = [
            await propose_text(lithos, note, "two"),
            await propose_note(lithos, "Fresh", agent="bee"),
            await propose(lithos, "lithos_delete", "bee", id=note),
            await propose(lithos, "lithos_note_move", "bee", id=note, path="attic/plan.md"),
        ]
        page = await person.look("/console/?type=proposal")
        assert sentences_of(page)[::-1] == [
            "bot proposed a change to Plan",
            "bee proposed the new note Fresh",
            "bee proposed to delete Plan",
            "bee proposed to move Plan to attic/plan.md",
        ]
        (told,) = [link for link in page.all("p", "knowledge")[0].links if "review" in link]
        assert told == "/console/review"
        assert "4 proposals to review" in page.told
        await decide(lithos, ids[0], "approve", by="Ann")
        await decide(lithos, ids[1], "reject", by="Ann", reason="Say where it is from.")
        await lithos.call("lithos_proposal_withdraw", id=ids[3], agent="bee")
        rows = rows_of(await piece(person, "&type=proposal"))
        assert [row.all("span", "told")[0].text for row in rows[:3]] == [
            "bee withdrew its proposal for Plan",
            "Ann rejected the proposal of bee for Fresh Say where it is from.",
            "Ann approved the proposal of bot for Plan",
        ]
        assert [f"/console/review/{one}" in row.all("span", "told")[0].links for one, row in zip(
            (ids[3], ids[1], ids[0]), rows, strict=False
        )] == [True] * 3  # fmt: skip


def test_feed_filter_lists_every_event_type() -> None:
    assert set(TYPES) == set(EVENTS)
    assert FeedFilter.of({"type": "note.invented"}).type == ""
    assert FeedFilter.of({"type": "task"}).wanted.types == {
        kind for kind in TYPES if kind.startswith("task.") and kind != "task.ready"
    }
    assert FeedFilter.of({"type": "task.ready"}).wanted.types == {"task.ready"}
    assert FeedFilter.of({"machinery": "1"}).wanted.types == set(TYPES)
    assert FeedFilter.of({"tag": " #raft "}).tag == "raft"


def test_hostile_texts_in_any_event_are_shown_as_plain_text() -> None:
    """behaviour 236: scripts in texts, agent names and tags of events have no effect."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for kind in (*sorted(TYPES), "unknown.kind"):
        _, keys = EVENTS.get(kind, ("", ("title",)))
        payload: dict[str, Any] = dict.fromkeys(keys, HOSTILE) | {"extra": {"not": "a text"}}
        draft = EventDraft(type=kind, agent=HOSTILE, payload=payload, timestamp=at, tags=(HOSTILE,))
        (row,) = of_no_notes().rows([Event(seq=1, draft=draft)], {HOSTILE: HOSTILE})
        sentence = parse(str(row.sentence))
        assert {each.tag for each in sentence.walk()} <= {"", "a", "bdi", "em", "span"}, kind
        assert dangers(sentence) == [], kind
        assert all(link.startswith("/console/") for link in sentence.links), kind
        assert "<script>alert(1)</script>" in sentence.text, kind
        assert "\u202e" not in str(row.sentence), kind


async def test_hostile_texts_are_shown_as_plain_text_on_the_overview(tmp_path: Path) -> None:
    """behaviour 236: covers the overview page."""
    async with visiting(tmp_path) as person:
        call = person.lithos.call
        note = await person.lithos.create(HOSTILE, agent=HOSTILE, tags=[HOSTILE])
        other = await person.lithos.create(f"{HOSTILE} again", agent=HOSTILE)
        await call("lithos_edge_upsert", from_id=note, to_id=other, type="contradicts", weight=1.0,
                   namespace="default", provenance_actor=HOSTILE)  # fmt: skip
        task = (await call("lithos_task_create", title=HOSTILE, agent=HOSTILE))["task_id"]
        await call("lithos_task_claim", task_id=task, aspect=HOSTILE, agent=HOSTILE)
        pages = [await person.look("/console/"), await piece(person), await piece(person, name="state")]
        for page in pages:
            assert dangers(page) == []
            assert "<script>alert(1)</script>" in page.text
        typed = check((await person.client.get("/console/", params={"agent": HOSTILE})).text)
        assert typed.all("input", name="agent")[0].attributes["value"] == HOSTILE
        assert len(rows_of(typed)) == 5


async def test_feed_is_filtered_by_type_agent_and_tag(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        await person.lithos.write("By Ann", agent="ann", tags=["raft"])
        await person.lithos.write("By Bob", agent="bob", tags=["ops"])
        await person.lithos.call("lithos_task_create", title="A task", agent="ann", tags=["raft"])
        assert await told(person, "&type=note&agent=bob") == ["bob wrote By Bob +1 ops"]
        assert await told(person, "&tag=raft&type=note.created") == ["ann wrote By Ann +1 raft"]
        assert await told(person, "&type=task") == ["ann created task A task raft"]
        assert len(await told(person, "&type=task&machinery=1")) == 2
        page = await person.look("/console/?type=task.created&agent=ann")
        assert sentences_of(page) == ["ann created task A task raft"]
        chosen = [each for each in page.all("option") if "selected" in each.attributes]
        assert [each.attributes["value"] for each in chosen] == ["task.created"]
        none = await person.look("/console/?agent=nobody")
        assert "No matching events happened recently." in none.text


async def test_feed_shows_events_after_a_position_completely_and_once(tmp_path: Path) -> None:
    """behaviour 238: after a lost connection, the feed shows each missing event exactly once."""
    async with visiting(tmp_path) as person:
        await person.lithos.write("Before")
        page = await person.look("/console/")
        seen = [row.attributes["data-seq"] for row in rows_of(page)]
        position, written = head_of(page), []
        for burst in range(4):  # Each burst of events happens while the connection is lost.
            for number in range(EVENTS_AWAY):
                written.append((await person.lithos.write(f"Burst {burst}, {number}"))["id"])
            news = await piece(person, f"&after={position}")
            fresh = [row.attributes["data-seq"] for row in rows_of(news)]
            assert len(fresh) == EVENTS_AWAY
            assert fresh == sorted(fresh, key=int, reverse=True)
            assert not set(fresh) & set(seen)
            seen, position = fresh + seen, head_of(news)
        assert rows_of(await piece(person, f"&after={position}")) == []
        store = person.lithos.server.get(Coordinator)._store
        assert [int(seq) for seq in seen] == [e.seq for e in reversed(store.events_after(0)) if e.seq]
        assert len(written) == 4 * EVENTS_AWAY


async def test_feed_continues_from_the_journal_after_a_restart(tmp_path: Path) -> None:
    """behaviour 238: a page that was open during a server restart continues at its position."""
    async with visiting(tmp_path) as person:
        await person.lithos.write("Before the restart")
        position = head_of(await person.look("/console/"))
        await person.lithos.write("After the look")
    async with visiting(tmp_path) as person:
        assert await told(person) == ["tester wrote After the look +1", "tester wrote Before the restart +1"]
        await person.lithos.write("After the restart")
        assert await told(person, f"&after={position}") == [
            "tester wrote After the restart +1",
            "tester wrote After the look +1",
        ]


async def test_overview_shows_a_limited_number_of_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "SHOWN", 3)
    monkeypatch.setattr(overview, "MORE_SHOWN", 5)
    monkeypatch.setattr(overview, "MOST_SHOWN", 5)
    async with visiting(tmp_path) as person:
        await person.lithos.write("First")
        position = head_of(await piece(person))
        for number in range(8):
            await person.lithos.write(f"Note {number}")
        page = await person.look("/console/")
        assert len(rows_of(page)) == 3
        (older,) = [link for link in page.all("a") if link.text == "Older events"]
        assert len(rows_of(await person.look(f"/console/{older.attributes['href']}"))) == 5
        assert (await told(person, f"&after={position}"))[0] == "tester wrote Note 7 +1"
        assert len(await told(person, f"&after={position}")) == 5
        assert len(await told(person, "&after=not-a-number")) == 3


async def test_note_changes_are_shown_as_commits_with_undo_links(tmp_path: Path) -> None:
    """A commit shows the number of added and removed lines, the difference, and an undo link."""
    async with visiting(tmp_path) as person:
        note = await person.lithos.create("Harbour names", content="One.\n\nTwo.\n\nThree.", agent="ann")
        await person.lithos.call("lithos_note_update", id=note, tags=["port"], agent="ann")
        await person.lithos.call(
            "lithos_write", id=note, title="Harbour names", content="Other.", agent="intern"
        )
        await person.lithos.call("lithos_delete", id=note, agent="intern")
        feed = await piece(person)
        assert sentences_of(feed) == [
            "intern deleted harbour-names.md port",
            "intern changed Harbour names +1 −5 diff port",
            "ann changed Harbour names diff port",
            "ann wrote Harbour names +5",
        ]
        ways = [[link.attributes["href"] for link in row.all("a", "do")] for row in rows_of(feed)]
        undo = f"/console/undo?agent=intern&note={note}"
        changed = f"/console/notes/{note}/diff?from=2&to=3"
        assert ways[:2] == [[undo], [changed, f"{undo}&version=3"]]
        assert all("/console/undo?agent=ann" in links[-1] for links in ways[2:])


def test_similar_rows_within_minutes_are_collapsed_into_the_newest() -> None:
    def rows(*given: tuple[float, str, str]) -> list[ActivityRow]:
        return [
            ActivityRow(seq, START + timedelta(minutes=at), kind, agent, Markup(""), "")
            for seq, (at, kind, agent) in enumerate(given)
        ]

    found = fold(
        rows(
            (20, "note.created", "ann"), (16, "note.created", "ann"), (15, "note.created", "ann"),
            (9, "note.created", "ann"), (9, "note.updated", "ann"), (9, "note.updated", "bob"),
            (8, "note.updated", "bob"),
        )
    )  # fmt: skip
    assert [(row.seq, [each.seq for each in row.folded]) for row in found] == [
        (0, [1, 2]), (3, []), (4, []), (5, [6]),
    ]  # fmt: skip
    assert [1 + len(row.folded) for row in fold(rows(*[(0, "note.created", "ann")] * 130))] == [51, 51, 28]


async def test_technical_events_are_shown_only_on_request(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        await person.lithos.call("lithos_agent_register", id="ann")
        await person.lithos.call("lithos_task_create", title="A task", agent="ann")
        assert await told(person) == ["ann created task A task"]
        assert len(await told(person, "&machinery=1")) == 3
        assert await told(person, "&type=agent.registered") == ["ann registered"]
        page = await person.look("/console/?machinery=1")
        assert "checked" in page.all("input", name="machinery")[0].attributes
        assert len(rows_of(page)) == 3


def test_event_sentences_are_built_once_and_cached_within_a_limit() -> None:
    at, happenings = datetime(2026, 1, 1, tzinfo=UTC), of_no_notes()
    events = [
        Event(seq=seq, draft=EventDraft(type="task.ready", agent="a", payload={"task_id": "t"}, timestamp=at))
        for seq in range(MOST_KEPT + 20)
    ]
    rows = list(happenings.rows(events, {"t": "T"}, room=10**9))
    assert len(happenings.unknown(events)) == 20
    (again,) = happenings.rows(events[-1:], {"t": "renamed"})
    assert again.sentence is rows[-1].sentence


async def test_console_stream_shows_the_same_events_as_the_event_stream(tmp_path: Path) -> None:
    """behaviour 238: an open page gets every write, including writes while the connection was lost."""
    async with visiting(tmp_path) as person:
        position = head_of(await person.look("/console/"))
        await person.lithos.write("Missed")
        host, _, port = person.url.removeprefix("http://").rpartition(":")
        request = f"GET /console/events?since={position} HTTP/1.1\r\nHost: {host}\r\n\r\n"
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(request.encode())
            assert b"event: note.created" in await read_until(stream, b"Missed")
            await person.lithos.write("Heard")
            assert b"Missed" not in await read_until(stream, b"Heard")
        # Partial responses are not complete pages.
        answer = await person.client.get("/console/feed?type=note&after=5")
        assert (answer.status_code, answer.headers["location"]) == (302, "/console/?type=note")
        assert (await person.client.get("/console/state")).headers["location"] == "/console/"


async def test_overview_shows_work_conflicts_and_concerns(tmp_path: Path) -> None:
    for path in ("twin.md", "twin 2.md", "one more.md"):
        put_note(tmp_path, path, "---\nid: 0f0f0f0f-1111-4222-8333-444444444444\n---\n# Twin\n")
    put_note(tmp_path, "torn.md", "# Torn\n\n<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs\n")
    async with visiting(tmp_path) as person:
        call = person.lithos.call
        ids = [await person.lithos.create(f"Note {number}") for number in range(3)]
        edges = []
        for end in ids[1:]:
            edge = await call("lithos_edge_upsert", from_id=ids[0], to_id=end, type="contradicts", weight=1.0,
                              namespace="default")  # fmt: skip
            edges.append(edge["edge_id"])
        await call("lithos_conflict_resolve", edge_id=edges[0], resolution="refuted", resolver="ann")
        await person.lithos.write("Old", expires_at="2020-01-01T00:00:00Z")
        task = (await call("lithos_task_create", title="A task", agent="ann"))["task_id"]
        await call("lithos_task_claim", task_id=task, aspect="review", agent="bob", ttl_minutes=30)
        page = await person.look("/console/")
        work = {each.attributes.get("id"): each.text for each in page.all("section", "card")}
        assert "bob" in work["at-work"]
        assert "holds review of A task expires in 29 min" in work["at-work"]
        assert "/console/undo?agent=bob" in page.links
        assert work["conflicts"].startswith("Open conflicts 1 Note 0 contradicts Note 2")
        while "expired" not in work:
            await trio.sleep(0.05)
            page = await piece(person, name="state")
            work = {each.attributes.get("id"): each.text for each in page.all("section", "card")}
        assert work["expired"].startswith("Expired notes 1")
        assert "Old" in work["expired"]
        assert not {"contradicted", "suspect"} & work.keys(), "what is told above, and what there is none of"
        assert work["duplicated"].startswith("Notes with a second file 1")
        assert "one more.md" in work["duplicated"]
        assert work["conflict_copies"].startswith("Notes with a conflict copy 1")
        assert "twin 2.md" in work["conflict_copies"]
        assert work["conflict_markers"].startswith("Notes with a git conflict 1")
        assert "Torn" in work["conflict_markers"]
        assert "twin 2.md" in (await person.look("/console/notes/0f0f0f0f-1111-4222-8333-444444444444")).text
        assert [each.attributes["data-fill"] for each in page.has("data-fill")] == [
            "health",
            "numbers",
            "work",
        ]


async def test_errors_are_shown_first_with_advice(tmp_path: Path) -> None:
    """behaviour 235: every page renders in a degraded state. In this test, a folder is missing."""
    async with visiting(tmp_path) as person:
        shutil.rmtree(person.lithos.knowledge)
        page = await person.look("/console/")
        assert page.all("p", "sentence")[0].text == "1 component needs attention."
        (trouble,) = page.all("ul", "troubles")[0].all("li")
        assert trouble.text.startswith("Notes folder unavailable")
        assert "Check that the folder exists" in trouble.text


#: Number of notes that are written while the connection is lost.
EVENTS_AWAY = 10
DEGRADED = ("/console/", "/console/state?partial=1", "/console/system")
#: Every database read that these pages perform.
READS = (
    "lithos.events.rows.store.CoordinationStore.counts",
    "lithos.tasks.rows.tasks.TaskRows.active_claims",
    "lithos.tasks.rows.tasks.TaskRows.titles",
    "lithos.events.rows.store.CoordinationStore.event_count",
    "lithos.events.rows.store.CoordinationStore.events_before",
    "lithos.memory.rows.edges.EdgeStore.edges",
)


async def test_pages_render_when_the_disk_is_full_or_database_hangs(tmp_path: Path) -> None:
    """behaviour 235: every page renders if notes cannot be written or if a read fails."""

    def fail(*_: object, **__: object) -> None:
        raise DatabaseFailed("disk I/O error")

    async with visiting(tmp_path) as person:
        call = person.lithos.call
        await person.lithos.write("A note")
        await call("lithos_task_create", title="A task", agent="ann")
        with failing_fsync(errno.ENOSPC):
            await call("lithos_write", title="Lost", content="x", agent="a")
            for path in DEGRADED:
                assert "notes cannot be written" in await person.page(path), path
        await call("lithos_write", title="Kept", content="x", agent="a")
        for failing in READS:
            for path in DEGRADED:
                assert "Internal Server Error" not in parse(await person.page(path)).text, "well again"
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(failing, fail)
                for path in DEGRADED:
                    page = parse(await person.page(path))
                    assert "Internal Server Error" not in page.text, (failing, path)
                    assert page.has("data-fill") or page.all("h1"), (failing, path)


@pytest.mark.slow
async def test_overview_page_of_a_busy_vault_stays_small(tmp_path: Path) -> None:
    """docs/spec/console.md §1: a page has at most 200 kB."""
    for number in range(300):
        put_note(tmp_path, f"n{number}.md", f"# Note {number}\n\ntext")
    async with visiting(tmp_path) as person:
        for number in range(210):
            await person.lithos.write(
                f"{number} " + "long title " * 20, agent="an agent " * 5, tags=["t" * 60] * 3
            )
        assert 50 < len(rows_of(await person.look("/console/?shown=100"))) <= 100
        long = await person.page("/console/feed?partial=1&after=1")
        assert 100 < len(rows_of(parse(long))) <= 200
        assert len(long.encode()) < 200_000


async def test_unreadable_notes_are_counted_and_linked_to_the_invalid_lines(tmp_path: Path) -> None:
    """behaviour 252"""
    for number in range(15):
        put_note(tmp_path, f"n{number:02}.md", "---\ntitle: a: b\n---\ntext")
    put_note(tmp_path, "binary.md", b"\0")
    async with visiting(tmp_path, storage=VAULT) as person:
        await person.lithos.server.searchable()
        page = await looked_through(person)
        assert [each.text for each in page.all("p", "sentence")] == [
            "The server is healthy.", "Knowledge: 16 unreadable.",
        ]  # fmt: skip
        assert "/console/notes?status=broken" in page.links
        listed = (await person.look("/console/notes?status=broken")).text
        assert listed.count("line 2 is malformed YAML") == 15
        assert "binary.md" in listed
        assert "it has NUL bytes" in listed
    async with visiting(tmp_path) as person:  # Notes that are not served are skipped and counted.
        await person.lithos.server.searchable()
        assert "Knowledge: 16 unreadable." in (await looked_through(person)).text
        listed = (await person.look("/console/notes?status=broken")).text
        assert listed.count("line 2 is malformed YAML") == 15


async def test_headline_warns_of_open_conflicts_and_quarantined_notes(tmp_path: Path) -> None:
    """behaviour 235: the server and the notes have one headline each. Each open issue links to its list."""
    async with visiting(tmp_path) as person:
        lithos = person.lithos
        await lithos.server.searchable()
        one, two = await lithos.create("One"), await lithos.create("Two", derived_from_ids=[])
        await lithos.create("Three", derived_from_ids=[two])
        edge = {"to_id": two, "type": "contradicts", "weight": 1.0, "namespace": "default"}
        await lithos.call("lithos_edge_upsert", from_id=one, **edge, provenance_actor="bob")
        await lithos.call("lithos_impact", id=two, action="quarantine", agent="bob", reason="It was made up.")
        page = await looked_through(person)
        assert [each.text for each in page.all("p", "sentence")] == [
            "The server is healthy.", "Knowledge: 1 conflict, 1 quarantined, 1 suspect.",
        ]  # fmt: skip
        links = [link.attributes["href"] for link in page.all("p", "knowledge")[0].all("a")]
        assert links == [
            "/console/#conflicts", "/console/notes?status=quarantined", "/console/notes?status=suspect",
        ]  # fmt: skip
        for link in links[1:]:
            assert "1 note" in (await person.look(link)).text
