"""End of a run: all parties stop, the server settles, and its state is compared with the promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import trio

from lithos.app.server import Server
from lithos.events.journal.coordinator import Coordinator
from lithos.history.recording.backfill import CatchingUp
from lithos.history.rows.store import HistoryStore
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.values import digest_of
from lithos.notes.watching.guard import DeletionGuard
from lithos.notes.writing.actor_writer import Writer
from tests.simulation.ledger import demand, tokens

if TYPE_CHECKING:
    from tests.simulation.world import World

#: Maximum virtual seconds until a call is answered, whatever the disk does.
PATIENCE = 180.0
#: Maximum virtual seconds until the state is stable, after all people and failures have stopped.
SETTLING = 200.0


async def settle(world: World) -> None:
    """Wait until no work remains, and check the whole state."""
    with trio.fail_after(PATIENCE):
        await world.wait_up()
    await trio.sleep(65.0 if world.plan.hearing.loss else 10.0)
    assert world.life is not None
    life = world.life
    server = life.server
    assert server is not None
    until = world.clock.now + SETTLING
    while not _looks_settled(world, server) and world.clock.now < until:
        await trio.sleep(5.0)
    with trio.fail_after(PATIENCE):
        await server.searchable()
        await server.get(CatchingUp).done.wait()
    world.trace("settled")
    await _check_indexes(world, server)
    await _check_tasks(world)
    until = world.clock.now + SETTLING
    while not _is_all_heard(world, server) and world.clock.now < until:
        await trio.sleep(0.5)
    _check_stores(world, _private(world))
    health = await world.call_undisturbed("lithos_stats")
    world.trace("stats", sorted(health))


def _looks_settled(world: World, server: Server) -> bool:
    """Return whether the server knows every file and has left no temporary file next to the notes."""
    known = {entry.path: entry.digest for entry in server.get(Catalogue)}
    no_notes = _no_notes(server)
    files = {path: digest_of(content) for path, content in _files(world).items() if path not in no_notes}
    return known == files and not _leftovers(world) and not server.get(DeletionGuard).kept


def _no_notes(server: Server) -> set[str]:
    """Return the files that are not notes. Unreadable files may still become notes after another read.

    A person may save a note under its old name after a move. A power loss may leave a file without text.
    """
    return {
        path
        for path, why in server.get(Catalogue).skipped.items()
        if not why.reason.startswith("it cannot be read")
    }


def _is_all_heard(world: World, server: Server) -> bool:
    """Return whether every listener has the newest event. A claim may expire at any time."""
    head = server.get(Coordinator).head
    return all(listener.heard and listener.heard[-1][0] == head for listener in world.listeners)


async def stop(world: World) -> None:
    """Stop the server cleanly. Sometimes start it again, and check that its state is the same."""
    before = _files(world)
    await _end_life(world)
    left = _leftovers(world)
    # After a folder rename or a disk failure, displaced files may remain. The next start removes them.
    demand(not left or world.plan.habits["folder"] or world.had_faults, f"left behind: {left}")
    journal = _journal(world, _private(world))
    if left or world.chance.of("server").random() < 0.25:
        with trio.fail_after(PATIENCE):
            await world.wait_up()
        assert world.life is not None
        assert world.life.server is not None
        with trio.fail_after(PATIENCE):
            await world.life.server.searchable()
        await trio.sleep(70.0 if left else 5.0)
        demand(_files(world) == before, "a start changed files")
        demand(not _leftovers(world), f"left behind by a start: {_leftovers(world)}")
        again = [
            event
            for event in _journal(world, _private(world))[len(journal) :]
            if event[1].startswith("note.")
        ]
        demand(not again, f"a start told of {again}")
        await _end_life(world)
    world.is_ending = True


async def _end_life(world: World) -> None:
    life = world.life
    assert life is not None
    life.stopping.set()
    with trio.fail_after(60):
        await life.ended.wait()
    world.trace("stopped")


def _leftovers(world: World) -> list[str]:
    knowledge = Path(world.disk.root) / "knowledge"
    return sorted(
        path.relative_to(knowledge).as_posix() for path in knowledge.rglob(".lithos-*") if path.is_file()
    )


async def _check_indexes(world: World, server: Server) -> None:
    """Check that the tools show exactly the notes in the folder."""
    files = _files(world)
    listed = await world.call_undisturbed("lithos_list", limit=1000)
    paths = {item["path"]: item["id"] for item in listed["items"]}
    no_notes = _no_notes(server)
    files = {path: content for path, content in files.items() if path not in no_notes}
    demand(
        sorted(paths) == sorted(files),
        f"the list has {sorted(paths.keys() - files.keys())} more and "
        f"{sorted(files.keys() - paths.keys())} less than the folder; "
        f"skipped: {dict(server.get(Catalogue).skipped)}, kept: {dict(server.get(DeletionGuard).kept)}",
    )
    demand(len(set(paths.values())) == len(paths), "an id is there twice")
    with_word = {ident for path, ident in paths.items() if world.WORD.encode() in files[path]}
    for mode in ("fulltext", "semantic", "hybrid"):
        answer = await world.call_undisturbed("lithos_search", query=world.WORD, mode=mode, limit=1000)
        demand(
            "results" in answer and answer.keys() == {"results"}, f"{mode} is not what it should be: {answer}"
        )
        found = {row["id"] for row in answer["results"]}
        demand(found <= set(paths.values()), f"{mode} finds {found - set(paths.values())}, which are gone")
        if mode != "semantic":
            demand(with_word <= found, f"{mode} does not find {with_word - found}")
    for path, ident in sorted(paths.items()):
        told = await world.call_undisturbed("lithos_read", id=ident)
        demand(told["content"].strip() in files[path].decode(), f"{path} is told as {told['content']!r}")
        for token in sorted(tokens(told["content"]))[-1:]:
            answer = await world.call_undisturbed("lithos_search", query=token, mode="fulltext")
            found = {row["id"] for row in answer["results"]}
            demand(ident in found, f"{token} is in {path} and is not found there")
    world.ledger.checks["indexes"] += 1


async def _check_tasks(world: World) -> None:
    rows = {row["id"]: row for row in (await world.call_undisturbed("lithos_task_list"))["tasks"]}
    for task in world.ledger.tasks.values():
        demand(task.id in rows, f"the task {task.id} is gone")
        demand(
            task.is_unsure or rows[task.id]["status"] == task.status,
            f"the task {task.id} is {rows[task.id]['status']}, not {task.status}",
        )
        found = [
            row["id"]
            for row in (await world.call_undisturbed("lithos_finding_list", task_id=task.id))["findings"]
        ]
        lost = [one for one in task.findings if found.count(one) != 1]
        demand(not lost, f"findings {lost} are not there once")
    if world.edges:
        there = {
            row["edge_id"]
            for row in (await world.call_undisturbed("lithos_edge_list", namespace="n"))["edges"]
        }
        demand(world.edges <= there, f"edges are gone: {world.edges - there}")


def _files(world: World) -> dict[str, bytes]:
    knowledge = Path(world.disk.root) / "knowledge"
    return {
        path.relative_to(knowledge).as_posix(): path.read_bytes()
        for path in knowledge.rglob("*.md")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(knowledge).parts)
    }


def _private(world: World) -> Path:
    return Path(world.disk.root) / ".lithos"


def _check_stores(world: World, private: Path) -> None:
    life = world.life
    assert life is not None
    assert life.server is not None
    store = life.server.get(Writer)._recorder.store
    assert isinstance(store, HistoryStore)
    versions: dict[tuple[str, int], list[bytes]] = {}
    ids = [str(row[0]) for row in store._reader.execute("SELECT id FROM notes")]
    newest: dict[str, tuple[str, bytes, str]] = {}
    for note in ids:
        for row in store.rows(note, 10_000)[0]:
            content = store.content(note, row.version)
            assert content is not None
            versions.setdefault((note, row.version), []).append(content)
            newest.setdefault(note, (row.path, content, row.op))
    files = _files(world)
    for note, (path, content, op) in newest.items():
        # The server reports changes that it could not store in the history. It stores them at the next start.
        if op != "deleted" and not world.had_faults and life.server.get(Catalogue).get(note) is not None:
            demand(files.get(path) == content, f"the newest version of {path} is not what is in its file")
    displaced = [
        path.read_bytes() for path in private.rglob("*") if path.is_file() and "displaced" in str(path)
    ]
    world.ledger.check_texts(versions, files, displaced)
    world.ledger.check_files(files)
    journal = _journal(world, private)
    world.ledger.check_events(journal)
    told = {seq: kind for seq, kind, _, _ in journal}
    for listener in world.listeners:
        heard = {seq: kind for seq, kind, _ in listener.heard}
        demand(
            heard.items() <= told.items(),
            f"events were delivered that are not in the journal: {heard.items() - told.items()}",
        )
        missed = [seq for seq in told if seq not in heard]
        demand(not missed, f"events were not delivered: {[(seq, told[seq]) for seq in missed]}")
    world.trace("journal", [(seq - journal[0][0], kind) for seq, kind, _, _ in journal])


def _journal(world: World, private: Path) -> list[tuple[int, str, str, dict[str, Any]]]:
    journal = apsw.Connection(str(private / "coordination.db"), flags=apsw.SQLITE_OPEN_READONLY, vfs="unix")
    try:
        rows: Any = journal.execute("SELECT seq, type, agent, payload FROM events ORDER BY rowid").fetchall()
    finally:
        journal.close()
    return [(int(seq), str(kind), str(agent), json.loads(payload)) for seq, kind, agent, payload in rows]
