"""The indexer: batches, refusals, repairs and waiting callers."""

from __future__ import annotations

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown
from lithos.kernel.values.errors import IndexFailed
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.note_records import KeptEntities
from lithos.notes.files.files import NoteFiles
from lithos.notes.indexing_messages import Indexed, Removal
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.indexing.indexer import Indexer
from lithos.search.indexing.ports import FulltextPort
from lithos.text.chunk import ChunkSizes
from tests.fakes import FakeIndex, Gate, enter_file, make_entry, make_upsert, served

pytestmark = pytest.mark.autojump


class Desk:
    """An indexer with a fake index and real files."""

    def __init__(self, root) -> None:
        self.files = NoteFiles(root)
        self.files.create_root()
        self.catalogue = Catalogue()
        self.index = FakeIndex()
        self.gate = Gate()
        self.indexer = Indexer("fake", self.index, self.catalogue, self.files, self.gate)
        self.mailbox = self.indexer.mailbox

    def served(self):
        return served(self.mailbox, self.indexer.start, self.indexer.converge)

    def enter(self, path: str, text: str = "# T\n\nbody"):
        return enter_file(self.catalogue, self.files, path, text)

    def is_complete(self) -> bool:
        return self.index.held == self.catalogue.stamps()


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path / "knowledge")


async def test_change_is_searchable_when_it_is_confirmed(desk):
    entry = make_entry(1)
    desk.catalogue.put(entry)
    async with served(desk.mailbox, desk.indexer.start):
        assert await desk.mailbox.ask(make_upsert(entry)) is Indexed.DONE
        assert desk.index.held == {1: entry.stamp}
        assert await desk.mailbox.ask(Removal(1)) is Indexed.DONE
        assert desk.index.held == {}


async def test_waiting_changes_form_one_batch_and_the_last_takes_effect(desk):
    async with served(desk.mailbox, desk.indexer.start):
        desk.gate.shut()
        await desk.mailbox.post(make_upsert(make_entry(9)))
        await wait_all_tasks_blocked()
        entries = [make_entry(n % 3, title=f"v{n}") for n in range(9)]
        receipts = [await desk.mailbox.post(make_upsert(entry)) for entry in entries]
        receipts.append(await desk.mailbox.post(Removal(2)))
        desk.gate.open()
        assert [await receipt.reply() for receipt in receipts] == [Indexed.DONE] * 10
    assert desk.index.applied[1:] == [([0, 1], [2])]
    assert desk.index.held[0] == entries[6].stamp


async def test_changes_are_deferred_until_the_index_is_ready(desk):
    desk.index.ready = False
    entry = desk.enter("a.md")
    async with desk.served():
        assert await desk.mailbox.ask(make_upsert(entry)) is Indexed.DEFERRED
        await trio.sleep(60)
        assert not desk.indexer.is_converged
        assert desk.index.applied == []
        desk.index.ready = True
        desk.indexer.mark_stale()
        await desk.indexer.converged()
        assert desk.is_complete()


async def test_cold_start_repairs_the_index_by_a_normal_comparison(desk):
    entries = [desk.enter(f"{n}.md") for n in range(3)]
    desk.index.held = {entries[0].serial: entries[0].stamp, entries[1].serial: 7, 99: 1}
    async with desk.served():
        await desk.indexer.converged()
        assert desk.is_complete()
    assert desk.index.applied == [([], [99]), ([entries[1].serial, entries[2].serial], [])]


async def test_repair_runs_in_slices_so_that_writes_can_pass(desk):
    for n in range(150):
        desk.enter(f"{n:04}.md")
    async with desk.served():
        await desk.indexer.converged()
    sizes = [len(added) for added, _ in desk.index.applied]
    assert sum(sizes) == 150
    assert max(sizes) <= 64


async def test_refused_batch_is_repaired_once_the_index_works_again(desk):
    async with desk.served():
        await desk.indexer.converged()
        desk.index.failing = True
        entry = desk.enter("a.md")
        with pytest.raises(IndexFailed):
            await desk.mailbox.ask(make_upsert(entry))
        assert not desk.indexer.is_converged
        assert desk.indexer.failure == "the disk is full"
        await trio.sleep(60)
        assert not desk.indexer.is_converged
        desk.index.failing = False
        await desk.indexer.converged()
        assert desk.is_complete()
        assert desk.indexer.failure is None
        assert desk.mailbox.stats.restarts == 0, "a refusal is no crash"


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_repair_is_dropped_when_the_note_has_changed(desk, is_deleted):
    """The writer's message arrives after the repair. A deleted note must not reappear after this message."""
    async with desk.served():
        await desk.indexer.converged()
        old = desk.enter("a.md")
        desk.gate.shut()
        desk.indexer.mark_stale()
        await wait_all_tasks_blocked()
        busy = await desk.mailbox.post(make_upsert(make_entry(99)))
        await wait_all_tasks_blocked()
        desk.gate.let_oldest()  # Let the comparison run.
        await wait_all_tasks_blocked()
        desk.gate.let_newest()  # Let the reading run.
        await wait_all_tasks_blocked()
        assert desk.mailbox.depth > 0, "the repair is queued behind the busy indexer"
        new = attrs.evolve(old, digest="new")
        if is_deleted:
            desk.catalogue.remove(old.note.id)
        else:
            desk.catalogue.put(new)
        desk.gate.open()
        await busy.reply()
        await wait_all_tasks_blocked()
        assert old.serial not in desk.index.held
        message = Removal(old.serial) if is_deleted else make_upsert(new, "new")
        await desk.mailbox.ask(message)
        assert desk.index.contents.get(old.serial) == (None if is_deleted else "new")


async def test_change_during_a_repair_takes_precedence(desk):
    """The repair has already read the file when the writer's change arrives."""
    old = desk.enter("a.md", "# T\n\nold")
    async with desk.served():
        await desk.indexer.converged()
        desk.index.held = {}
        desk.gate.shut()
        desk.indexer.mark_stale()
        await wait_all_tasks_blocked()
        new = desk.enter("a.md", "# T\n\nnew")
        new = attrs.evolve(new, serial=old.serial)
        desk.catalogue.put(new)
        receipt = await desk.mailbox.post(make_upsert(new, "new"))
        desk.gate.open()
        await receipt.reply()
        await desk.indexer.converged()
        assert desk.index.contents == {new.serial: "new"}
        assert desk.is_complete()


async def test_vanished_file_does_not_prevent_the_repair_of_other_notes(desk):
    gone = desk.enter("a.md")
    kept = desk.enter("b.md")
    (desk.files.root / "a.md").unlink()
    async with desk.served():
        await desk.indexer.converged()
    assert desk.index.held == {kept.serial: kept.stamp}
    assert gone.note.id in desk.catalogue


async def test_crash_makes_the_index_stale_until_repaired(desk):
    async with desk.served():
        await desk.indexer.converged()
        entry = desk.enter("a.md")
        desk.index.crashing = 1
        with pytest.raises(ActorDown):
            await desk.mailbox.ask(make_upsert(entry))
        assert not desk.indexer.is_converged, "nobody may think that the change is in"
        queued = await desk.mailbox.post(make_upsert(entry))
        assert await queued.reply() is Indexed.DONE
        await desk.indexer.converged()
        assert desk.is_complete()
        assert desk.mailbox.stats.restarts == 1


async def test_every_waiting_caller_is_woken_when_the_index_converges(desk):
    """A waiting caller is eventually woken, even if the index repeatedly becomes stale."""
    woken: list[int] = []

    async def wait(n: int) -> None:
        await desk.indexer.converged()
        assert desk.indexer.is_converged
        woken.append(n)

    async with desk.served() as nursery:
        for n in range(20):
            nursery.start_soon(wait, n)
            desk.enter(f"{n}.md")
            desk.indexer.mark_stale()
            for _ in range(n % 4):
                await trio.lowlevel.checkpoint()
        with trio.fail_after(60):
            while len(woken) < 20:
                await trio.sleep(0.1)
        assert desk.is_complete()


async def test_stale_mark_during_a_repair_causes_another_comparison(desk):
    desk.enter("a.md")
    async with desk.served():
        desk.gate.shut()
        desk.indexer.mark_stale()
        await wait_all_tasks_blocked()
        desk.enter("b.md")
        desk.indexer.mark_stale()
        desk.gate.open()
        await desk.indexer.converged()
        assert desk.is_complete()


async def test_start_waits_for_the_first_repair(desk):
    desk.enter("a.md")
    async with served(desk.mailbox, desk.indexer.start) as nursery:
        await nursery.start(desk.indexer.converge)
        assert desk.is_complete()


async def test_failing_index_does_not_delay_the_start(desk):
    """docs/spec/lifecycle.md §1: searches report the reason.

    The index is repaired once it accepts changes.
    """
    desk.enter("a.md")
    async with served(desk.mailbox, desk.indexer.start) as nursery:
        desk.index.failing = True
        with trio.fail_after(1):
            await nursery.start(desk.indexer.converge)
        assert desk.indexer._lacking == "the disk is full"
        assert not desk.is_complete()
        desk.index.failing = False
        await desk.indexer.converged()
        assert desk.is_complete()


@pytest.mark.parametrize("state", ["idle", "failing", "not ready"])
async def test_closing_the_mailbox_ends_the_repairs(desk, state):
    ended = trio.Event()
    desk.index.failing = state == "failing"
    desk.index.ready = state != "not ready"
    desk.enter("a.md")

    async def converge() -> None:
        await desk.indexer.converge()
        ended.set()

    async with trio.open_nursery() as outer:
        async with served(desk.mailbox, desk.indexer.start):
            outer.start_soon(converge)
            await trio.sleep(1)
        with trio.fail_after(60):
            await ended.wait()


async def test_waiting_messages_are_indexed_when_the_mailbox_closes(desk):
    async with served(desk.mailbox, desk.indexer.start):
        receipts = [await desk.mailbox.post(make_upsert(make_entry(n))) for n in range(200)]
    assert [await receipt.reply() for receipt in receipts] == [Indexed.DONE] * 200
    with pytest.raises(ShuttingDown):
        await desk.mailbox.post(Removal(1))


# -- the fake index compared with the real index ------------------------------------------------------


@pytest.fixture(params=["fake", "tantivy"])
def port(request, tmp_path):
    if request.param == "fake":
        yield FakeIndex()
        return
    index = FulltextIndex.open(tmp_path / ".tantivy")
    yield FulltextPort(index, ChunkSizes(500), KeptEntities())
    index.close()


def test_index_contains_the_notes_that_were_applied(port):
    """The fake index and the full-text index follow the same contract."""
    one, two = make_entry(1), make_entry(2)
    assert port.is_ready()
    assert port.stamps() == {}
    port.apply([make_upsert(one, "x"), make_upsert(two, "y")], [])
    assert port.stamps() == {1: port.expected(one), 2: port.expected(two)}
    newer = attrs.evolve(one, digest="newer")
    port.apply([make_upsert(newer, "z")], [2, 77])
    assert port.stamps() == {1: port.expected(newer)}
    assert port.expected(newer) != port.expected(one)
