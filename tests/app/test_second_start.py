"""Second start of a server: the notes that readers see before and after the file scan."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.app.server import Server, running_server
from lithos.kernel.actors import start_progress
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.notes.catalogue import scan
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.files import NoteFiles
from lithos.notes.service.knowledge import Knowledge
from lithos.search.settings import SearchConfig
from lithos.server.mcp.resource_pages import Library
from lithos.server.settings import ServerConfig
from tests.servers import serving


async def make_known(tmp_path: Path, looking: threading.Event | None = None) -> dict[str, str]:
    """Run a server with three notes. Return the note ids by title. The next start waits for `looking`."""
    async with serving(tmp_path / "data") as lithos:
        ids = {
            title: await lithos.create(title, f"The harvest of {title} begins in May.")
            for title in ("Cloves", "Mace", "Nutmeg")
        }
    if looking is not None:
        looking.clear()
    return ids


def known(tmp_path: Path) -> Config:
    return Config(
        storage=StorageConfig(data_dir=tmp_path / "data"),
        server=ServerConfig(watch_files=False),
        search=SearchConfig(tier="static"),
    )


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Yield an event. A start with known notes waits for this event before it lists files.

    The event is initially set.
    """
    go, real = threading.Event(), NoteFiles.list_notes
    go.set()

    def list_notes(files: NoteFiles) -> Any:
        go.wait(30)
        return real(files)

    monkeypatch.setattr(NoteFiles, "list_notes", list_notes)
    monkeypatch.setattr(scan, "MANY_KNOWN", 1)
    monkeypatch.setattr(start_progress, "SHORT", 0.05)
    yield go
    go.set()


async def titles_of(server: Server, tool: str, **more: Any) -> tuple[set[str], Any]:
    """Return the titles in an answer, and the completeness that the answer reports."""
    answer = await server.tools.call(tool, more)
    assert answer is not None
    rows = answer["results"] if "results" in answer else answer["items"]
    return {row["title"] for row in rows}, (answer.get("degraded", False), answer.get("indexing"))


async def test_second_start_serves_known_notes_before_the_file_scan(
    tmp_path: Path, looking: threading.Event
) -> None:
    """Behaviour 250: the scan finds changes that were made before the start.

    Until the end of the scan, answers are marked as incomplete.
    """
    ids = await make_known(tmp_path, looking)
    (tmp_path / "data/knowledge/mace.md").unlink()
    nutmeg = tmp_path / "data/knowledge/nutmeg.md"
    nutmeg.write_text(nutmeg.read_text().replace("May", "June"))
    unchecked = (True, {"done": 3, "total": 3})
    query = {"query": "harvest", "mode": "fulltext"}
    async with running_server(known(tmp_path), gets_front=True) as server:
        with trio.fail_after(60):
            assert await titles_of(server, "lithos_search", **query) == ({"Cloves", "Nutmeg"}, unchecked)
            assert await titles_of(server, "lithos_list") == ({"Cloves", "Mace", "Nutmeg"}, unchecked)
            assert await resources_of(server) == set()  # resource lists cannot be marked as incomplete
        waited: list[Any] = []

        async def ask(tool: str, **arguments: Any) -> None:
            waited.append(await server.tools.call(tool, arguments))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(ask, "lithos_read", id=ids["Nutmeg"]))
            nursery.start_soon(
                partial(ask, "lithos_write", id=ids["Nutmeg"], title="Nutmeg", content="x", agent="a",
                        expected_version=1)
            )  # fmt: skip
            with trio.move_on_after(0.2):
                await server.get(Opening).known.wait()
            assert waited == []
            looking.set()
        with trio.fail_after(60):
            await server.get(Opening).complete.wait()
        assert await titles_of(server, "lithos_list") == ({"Cloves", "Nutmeg"}, (False, None))
        assert await titles_of(server, "lithos_search", **query) == ({"Cloves", "Nutmeg"}, (False, None))
        read, refused = sorted(waited, key=lambda answer: "code" in answer)
        assert "June" in read["content"]
        assert read["metadata"]["version"] == 2
        assert refused["code"] == "version_conflict"
        assert await resources_of(server) == {"Cloves", "Nutmeg"}


async def test_results_from_before_the_scan_are_marked_when_sent_later(
    tmp_path: Path, looking: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_known(tmp_path, looking)
    begun, real = trio.Event(), Knowledge.list_notes

    async def list_notes(knowledge: Knowledge, *arguments: Any, **more: Any) -> Any:
        begun.set()
        page = await real(knowledge, *arguments, **more)
        await server.get(Opening).complete.wait()
        return page

    monkeypatch.setattr(Knowledge, "list_notes", list_notes)
    (tmp_path / "data/knowledge/mace.md").unlink()
    async with running_server(known(tmp_path), gets_front=True) as server, trio.open_nursery() as nursery:
        found: list[Any] = []

        async def ask() -> None:
            found.append(await titles_of(server, "lithos_list"))

        nursery.start_soon(ask)
        with trio.fail_after(60):
            await begun.wait()
            looking.set()
            await server.get(Opening).complete.wait()
            while not found:
                await trio.lowlevel.checkpoint()
        assert found == [({"Cloves", "Mace", "Nutmeg"}, (True, {"done": 2, "total": 2}))]


async def test_known_notes_are_not_awaited_when_the_folder_is_unreadable() -> None:
    start = Opening()
    start.failure = "the notes cannot be read"
    with trio.fail_after(60):
        await start.wait_recalled()


async def resources_of(server: Server) -> set[str]:
    """Return the titles of all notes in the resource list."""
    page = await server.get(Library).resources.page(None)
    return {each.told["title"] for each in page.resources if each.address.kind == "note"}


async def test_second_start_never_shows_notes_whose_files_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_known(tmp_path)
    (tmp_path / "data/knowledge/mace.md").unlink()
    (tmp_path / "data/knowledge/new.md").write_text("# New\n\nharvest\n")
    go, real = threading.Event(), scan._look

    def look(*arguments: Any, **more: Any) -> Any:
        go.wait(30)
        return real(*arguments, **more)

    monkeypatch.setattr(scan, "_look", look)
    monkeypatch.setattr(scan, "MANY_UNREAD", 0)
    monkeypatch.setattr(start_progress, "SHORT", 0.05)
    try:
        async with running_server(known(tmp_path), gets_front=True) as server:
            with trio.fail_after(60):
                shown, (is_degraded, _) = await titles_of(server, "lithos_list")
            assert (shown, is_degraded) == ({"Cloves", "Nutmeg"}, True)
            go.set()
            with trio.fail_after(60):
                await server.get(Opening).complete.wait()
            assert await titles_of(server, "lithos_list") == ({"Cloves", "Nutmeg", "New"}, (False, None))
    finally:
        go.set()


@pytest.mark.parametrize("is_touched", [False, True])
async def test_unchanged_known_notes_are_loaded_once(
    tmp_path: Path, looking: threading.Event, monkeypatch: pytest.MonkeyPatch, *, is_touched: bool
) -> None:
    await make_known(tmp_path, looking)
    if is_touched:
        (tmp_path / "data/knowledge/mace.md").touch()
    loads, real = [], Catalogue.load

    def load(catalogue: Catalogue, entries: Any) -> None:
        loads.append(catalogue)
        real(catalogue, entries)

    monkeypatch.setattr(Catalogue, "load", load)
    looking.set()
    async with running_server(known(tmp_path), gets_front=True) as server:
        with trio.fail_after(60):
            await server.get(Opening).complete.wait()
        assert len(loads) == 1 + is_touched
        assert await server.tools.call("lithos_related", {"id": (await ids_of(server))[0]}) is not None
        assert await titles_of(server, "lithos_list") == ({"Cloves", "Mace", "Nutmeg"}, (False, None))


async def ids_of(server: Server) -> list[str]:
    return [entry.note.id for entry in server.get(Catalogue)]
