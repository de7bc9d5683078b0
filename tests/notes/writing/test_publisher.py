"""The publisher: it announces searchable changes once, in order, and only after they are journalled."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import attrs
import outcome
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.events.journal.messages import AppendEvents, Journalled
from lithos.kernel.actors.mailboxes import ActorDown, Envelope, Mailbox, run_batches
from lithos.kernel.actors.threads import Inline
from lithos.kernel.values.errors import IndexFailed, StorageFailed
from lithos.kernel.values.events import NOTE_DELETED, NOTE_UPDATED, EventDraft
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.catalogue.note_records import NoteRecords
from lithos.notes.files.manifest import Manifest
from lithos.notes.indexing_messages import Indexed
from lithos.notes.model.note import Document
from lithos.notes.writing.actor_publisher import Publisher
from lithos.notes.writing.messages import CommittedChange, Publication, WriteOutcome
from lithos.notes.writing.ports import PATIENCE
from tests.fakes import START, make_entry, served

pytestmark = pytest.mark.autojump


class FakeIndexer:
    """An indexer with the interface that a publisher uses."""

    is_converged = False
    is_in_demand = False
    hurried = 0

    def __init__(self) -> None:
        self.promised: list[Envelope] = []

    def hurry(self) -> None:
        self.hurried += 1

    def promise(self, envelope: Envelope) -> None:
        self.promised.append(envelope)


class Desk:
    """A publisher with simulated receipts and a simulated journal."""

    def __init__(self, path) -> None:
        self.manifest = Manifest.open(path, START)
        self.coordinator: Mailbox = Mailbox("coordinator", 8)
        self.indexers = [FakeIndexer(), FakeIndexer()]
        self.publisher = Publisher(self.coordinator, self.indexers, self.manifest, Inline(), NoteRecords())
        self.mailbox = self.publisher.mailbox
        self.journal: list[str] = []
        self.batches: list[int] = []
        self.answer: Journalled | None = None
        self.crashing = 0
        self.held = trio.Event()
        self.held.set()

    async def start_coordinator(self, inbox, *, task_status) -> None:
        task_status.started()
        await run_batches(inbox, self._append, size=8)

    async def _append(self, messages: Sequence[AppendEvents]) -> list[object]:
        await self.held.wait()
        if self.crashing:
            self.crashing -= 1
            raise RuntimeError("a bug in the coordinator")
        for message in messages:
            self.batches.append(len(message.drafts))
            self.journal += [str(draft.payload["n"]) for draft in message.drafts]
        return [self.answer or len(self.journal)] * len(messages)

    def served(self):
        return served(self.mailbox, self.publisher.start)

    def rows(self) -> dict[str, int]:
        return {row.path: row.note.version for row in self.manifest.load()}


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path / "manifest.db")
    yield desk
    desk.manifest.close()


def make_change(entry: Entry, name: str, *, removal: bool = False) -> CommittedChange:
    kind = NOTE_DELETED if removal else NOTE_UPDATED
    event = EventDraft(type=kind, agent="a", payload={"n": name}, timestamp=START)
    told = WriteOutcome("deleted" if removal else "updated", entry.note.id, entry.path, entry.note.version)
    vacated = entry.path if removal else None
    return CommittedChange(
        entry, None if removal else Document(note=entry.note, content=""), event, told, vacated
    )


def receipts(*results: object) -> list[Envelope]:
    """Create one receipt per index. A result is a reply, an exception, or None for a pending receipt."""
    made = []
    for result in results:
        envelope: Envelope = Envelope(None)
        if isinstance(result, Exception):
            envelope.resolve(outcome.Error(result))
        elif result is not None:
            envelope.resolve(outcome.Value(result))
        made.append(envelope)
    return made


def make_publication(serial: int, *results: object, version: int = 1, removal: bool = False) -> Publication:
    entry = make_entry(serial, version=version)
    given = results or (Indexed.DONE, Indexed.DONE)
    return Publication(make_change(entry, f"{serial}v{version}", removal=removal), receipts(*given))


FAILED = (IndexFailed("full"), IndexFailed("full"))


async def test_change_is_answered_after_one_index_and_the_journal(desk):
    """behaviour 187"""
    publication = make_publication(1, None, None)
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        envelope = await desk.mailbox.post(publication)
        await wait_all_tasks_blocked()
        assert not envelope.done.is_set()
        assert desk.journal == []
        desk.held = trio.Event()
        publication.receipts[1].resolve(outcome.Value(Indexed.DONE))
        await wait_all_tasks_blocked()
        assert not envelope.done.is_set()
        assert desk.rows() == {}
        desk.held.set()
        assert await envelope.reply() is publication.change.outcome
        assert not publication.receipts[0].done.is_set()
        assert [indexer.hurried for indexer in desk.indexers] == [0, 0]
        await trio.sleep(1)
        assert desk.rows() == {"n1.md": 1}
    assert desk.journal == ["1v1"]
    assert desk.manifest.seq == 1


@pytest.mark.parametrize("first", [IndexFailed("x"), ActorDown("x"), Indexed.DEFERRED])
@pytest.mark.parametrize("other", [0, 1])
async def test_other_index_is_hurried_and_awaited_when_one_index_failed(desk, first, other):
    """behaviour 63"""
    results = [first, first]
    results[other] = None
    publication = make_publication(1, *results)
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        envelope = await desk.mailbox.post(publication)
        await wait_all_tasks_blocked()
        assert not envelope.done.is_set()
        assert desk.indexers[other].hurried
        publication.receipts[other].resolve(outcome.Value(Indexed.DONE))
        assert await envelope.reply() is publication.change.outcome
    assert desk.journal == ["1v1"]


@pytest.mark.parametrize("slow", [0, 1])
async def test_change_waits_for_every_index_while_searches_run(desk, slow):
    """Lifecycle section 3: reads never wait for the disk sync of a write."""
    results = [Indexed.DONE, Indexed.DONE]
    results[slow] = None
    publication = make_publication(1, *results)
    desk.indexers[slow].is_in_demand = True
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        envelope = await desk.mailbox.post(publication)
        await wait_all_tasks_blocked()
        assert not envelope.done.is_set()
        assert desk.indexers[slow].hurried
        assert desk.indexers[slow].promised == [], "a search must not wait for it meanwhile"
        publication.receipts[slow].resolve(outcome.Error(IndexFailed("one failing index is tolerated")))
        assert await envelope.reply() is publication.change.outcome
        began = trio.current_time()
        waiting = [await desk.mailbox.post(make_publication(2, *results))]
        await wait_all_tasks_blocked()  # The change is accepted.
        waiting += [await desk.mailbox.post(make_publication(serial, *results)) for serial in (3, 4)]
        for envelope in waiting:
            await envelope.reply()
        assert trio.current_time() == began + 2 * PATIENCE, "the first alone, then all others together"
    assert desk.journal == ["1v1", "2v1", "3v1", "4v1"]


async def test_searches_wait_for_a_change_before_its_event_is_journalled(desk):
    """behaviour 194"""
    taken, withheld = make_publication(1), make_publication(2, *FAILED)
    desk.held = trio.Event()
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        envelopes = [await desk.mailbox.post(publication) for publication in (withheld, taken)]
        await wait_all_tasks_blocked()
        assert desk.journal == []
        assert [indexer.promised for indexer in desk.indexers] == [[taken.receipts[0]], [taken.receipts[1]]]
        desk.held.set()
        with pytest.raises(StorageFailed):
            await envelopes[0].reply()


async def test_manifest_stores_many_changes_at_once(desk, monkeypatch):
    stored, real = [], desk.manifest.store
    monkeypatch.setattr(
        desk.manifest, "store", lambda rows, *more: (stored.append(len(rows)), real(rows, *more))
    )
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        for serial in range(20):
            await desk.mailbox.ask(make_publication(serial))
        assert desk.rows() == {}
        await trio.sleep(1)
        assert stored == [20]
        await desk.mailbox.ask(make_publication(20))
    assert stored == [20, 1], "the rest at the end"
    assert len(desk.rows()) == 21


async def test_waiting_changes_are_journalled_in_order_in_one_message(desk):
    for serial in range(20):
        await desk.mailbox.post(make_publication(serial))
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        await wait_all_tasks_blocked()
    assert desk.batches == [20]
    assert desk.journal == [f"{serial}v1" for serial in range(20)]
    assert len(desk.rows()) == 20


@pytest.mark.parametrize(
    "results",
    [
        (IndexFailed("x"), Indexed.DONE),
        (Indexed.DONE, IndexFailed("x")),
        (ActorDown("x"), Indexed.DONE),
        (Indexed.DONE, Indexed.DEFERRED),
        (Indexed.DEFERRED, Indexed.DEFERRED),
    ],
)
async def test_failure_of_one_index_or_a_missing_model_is_tolerated(desk, results):
    """behaviour 63"""
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        assert (await desk.mailbox.ask(make_publication(1, *results))).status == "updated"
    assert desk.journal == ["1v1"]


@pytest.mark.parametrize("results", [FAILED, (ActorDown("x"), IndexFailed("x"))])
async def test_failure_of_two_indexes_is_reported_and_repair_sends_event(desk, results):
    """behaviour 63"""
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        publication = make_publication(1, *results, version=3)
        with pytest.raises(StorageFailed) as caught:
            await desk.mailbox.ask(publication)
        assert caught.value.code == "internal_error"
        told = publication.change.outcome
        assert caught.value.extras == {"id": told.id, "path": told.path, "version": 3}
        await trio.sleep(60)
        assert (desk.journal, desk.rows(), desk.publisher.withheld) == ([], {}, 1)
        desk.indexers[1].is_converged = True
        await trio.sleep(60)
        assert (desk.journal, desk.rows(), desk.publisher.withheld) == (["1v3"], {"n1.md": 3}, 0)
        await trio.sleep(60)
    assert desk.journal == ["1v3"]


async def test_later_change_never_overtakes_a_withheld_one(desk):
    """The event of the first change is sent first, and the manifest ends with the second change."""
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        for publication in (make_publication(1, *FAILED, version=1), make_publication(2, *FAILED)):
            with pytest.raises(StorageFailed):
                await desk.mailbox.ask(publication)
        await desk.mailbox.ask(make_publication(1, version=2))
        assert desk.journal == ["1v1", "1v2"]
        assert desk.publisher.withheld == 1
        desk.indexers[0].is_converged = True
        await trio.sleep(5)
    assert desk.journal == ["1v1", "1v2", "2v1"]
    assert desk.rows() == {"n1.md": 2, "n2.md": 1}


async def test_deleted_note_with_a_withheld_update_stays_deleted(desk):
    desk.manifest.store([make_entry(1)], seq=0)
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        with pytest.raises(StorageFailed):
            await desk.mailbox.ask(make_publication(1, *FAILED, version=2))
        await desk.mailbox.ask(make_publication(1, version=2, removal=True))
        desk.indexers[0].is_converged = True
        await trio.sleep(5)
    assert desk.journal == ["1v2", "1v2"]
    assert desk.rows() == {}


async def test_new_note_replacing_a_withheld_deletion_keeps_its_row(desk):
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        with pytest.raises(StorageFailed):
            await desk.mailbox.ask(make_publication(1, *FAILED, removal=True))
        replacement = make_publication(2)
        entry = attrs.evolve(replacement.change.entry, path="n1.md")
        change = attrs.evolve(replacement.change, entry=entry)
        await desk.mailbox.ask(Publication(change, replacement.receipts))
        desk.indexers[0].is_converged = True
        await trio.sleep(5)
    assert desk.journal == ["1v1", "2v1"]
    assert desk.rows() == {"n1.md": 1}
    assert [row.serial for row in desk.manifest.load()] == [2]


async def test_change_failing_after_a_repair_waits_for_the_next_repair(desk):
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        with pytest.raises(StorageFailed):
            await desk.mailbox.ask(make_publication(1, *FAILED))
        desk.indexers[0].is_converged = True
        await trio.sleep(5)
        desk.indexers[0].is_converged = False
        with pytest.raises(StorageFailed):
            await desk.mailbox.ask(make_publication(2, *FAILED))
        await trio.sleep(5)
        assert desk.journal == ["1v1"]


async def test_manifest_is_never_ahead_of_the_journal(desk):
    """behaviour 128: the change of the note succeeds nevertheless."""
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        desk.answer = Journalled.LATER
        assert (await desk.mailbox.ask(make_publication(1))).status == "updated"
        assert (await desk.mailbox.ask(make_publication(2, removal=True))).status == "deleted"
        await trio.sleep(1)
        assert desk.rows() == {}
        assert desk.manifest.seq is None
        desk.answer = None
        await desk.mailbox.ask(make_publication(1, version=2))
    assert desk.rows() == {"n1.md": 2}
    assert desk.manifest.seq == 3


async def test_batched_changes_of_one_note_end_with_the_last_change(desk):
    for version in (1, 2, 3):
        await desk.mailbox.post(make_publication(1, version=version))
    await desk.mailbox.post(make_publication(2, removal=True))
    await desk.mailbox.post(make_publication(2, version=5))
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        await wait_all_tasks_blocked()
    assert desk.journal == ["1v1", "1v2", "1v3", "2v1", "2v5"]
    assert desk.rows() == {"n1.md": 3, "n2.md": 5}


async def test_journal_crash_leaves_the_outcome_unknown_and_keeps_the_queue(desk):
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        desk.crashing, desk.held = 1, trio.Event()
        doomed = await desk.mailbox.post(make_publication(1))
        await wait_all_tasks_blocked()
        queued = await desk.mailbox.post(make_publication(2))
        desk.held.set()
        with pytest.raises(ActorDown):
            await doomed.reply()
        assert (await queued.reply()).status == "updated"
    assert desk.journal == ["2v1"]
    assert desk.rows() == {"n2.md": 1}, "the next start finds the first"
    assert desk.mailbox.stats.restarts == 1


async def test_unwritable_manifest_fails_no_call_and_catches_up(desk, monkeypatch):
    """The manifest can be rebuilt.

    A disk that is too full for the manifest does not make the outcome unknown.
    """

    refused = []

    def full(*_):
        refused.append(1)
        raise apsw.FullError("database or disk is full")

    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        with monkeypatch.context() as patch:
            patch.setattr(desk.manifest, "store", full)
            for publication in (make_publication(1), make_publication(2), make_publication(2, removal=True)):
                assert await desk.mailbox.ask(publication)
                await trio.sleep(1)
            assert len(refused) == 3
        assert (desk.rows(), desk.manifest.seq) == ({}, None)
        await desk.mailbox.ask(make_publication(3))
    assert desk.journal == ["1v1", "2v1", "2v1", "3v1"]
    assert desk.rows() == {"n1.md": 1, "n3.md": 1}
    assert desk.mailbox.stats.restarts == 0


async def test_crash_during_a_manifest_write_loses_no_row(desk, monkeypatch):
    real, crashes = desk.manifest.store, [1]

    def crash_once(*arguments):
        if crashes:
            crashes.pop()
            raise RuntimeError("a bug")
        real(*arguments)

    monkeypatch.setattr(desk.manifest, "store", crash_once)
    async with served(desk.coordinator, desk.start_coordinator), desk.served():
        assert (await desk.mailbox.ask(make_publication(1))).status == "updated"
        await trio.sleep(60)
        assert desk.rows() == {"n1.md": 1}
    assert desk.mailbox.stats.restarts == 1
