"""`lithos reconcile --accept-vanished`, and external edits with a real server process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lithos.events.journal.coordinator import Coordinator
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.guard_orders import VanishedFiles
from tests.e2e.process import Lithos, run_lithos, running_lithos, until
from tests.kernel.actors.watched import note
from tests.servers import put_note, serving

pytestmark = pytest.mark.slow


def wait_for(server: Lithos, component: str, **expected: object) -> None:
    """Wait until a component of `/health` has all the given values."""
    until(lambda: server.health()[1][component].items() >= expected.items(), server.health)


async def make_corpus(data: Path) -> None:
    for n in range(30):
        put_note(data, f"{n:02}.md", note(n, f"about zebra{n}"))
    async with serving(data):
        pass


async def documents(data: Path) -> tuple[int, list[str]]:
    """Return the number of known notes, and the paths of all deletions in the journal."""
    async with serving(data) as lithos:
        events = lithos.server.get(Coordinator)._store.events_after(0)
        gone = [str(e.draft.payload["path"]) for e in events if e.draft.type == "note.deleted"]
        assert len(await lithos.found("about", mode="fulltext", limit=50)) == len(
            lithos.server.get(Catalogue)
        )
        return len(lithos.server.get(Catalogue)), gone


@pytest.mark.parametrize("whole_folder", [False, True])
async def test_vanished_files_are_accepted_at_once_without_a_server(tmp_path, whole_folder):
    """behaviour 198"""
    data = tmp_path / "data"
    await make_corpus(data)
    if whole_folder:
        shutil.rmtree(data / "knowledge")
    else:
        for n in range(20):
            (data / f"knowledge/{n:02}.md").unlink()
    lost = [f"{n:02}.md" for n in range(30 if whole_folder else 20)]
    asked = run_lithos("-d", data, "reconcile", "--accept-vanished", "--dry-run", "--json")
    assert json.loads(asked.stdout) == {"dry_run": True, "vanished": lost, "accepted": False}
    assert (data / "knowledge").exists() is not whole_folder
    done = run_lithos("-d", data, "reconcile", "--accept-vanished")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        *(f"  {path}" for path in lost),
        f"{len(lost)} vanished files removed from the indexes",
    ]
    again = run_lithos("-d", data, "reconcile", "--accept-vanished")
    assert (again.returncode, again.stdout) == (0, "No files have vanished\n")
    assert await documents(data) == (30 - len(lost), lost)


async def test_reconcile_stores_its_approval_for_a_running_server(tmp_path):
    """behaviour 198"""
    data = tmp_path / "data"
    await make_corpus(data)
    with running_lithos(data) as server:
        wait_for(server, "watcher", status="ok", mode="native")
        for n in range(20):
            (data / f"knowledge/{n:02}.md").unlink()
        wait_for(server, "index", status="degraded", vanished=20)
        assert server.health()[1]["knowledge_base"]["documents"] == 30
        put_note(data, "00.md", note(0, "about zebra0"))
        wait_for(server, "index", status="degraded", vanished=19)
        done = run_lithos("-d", data, "reconcile", "--accept-vanished", "--json")
        assert done.returncode == 0
        lost = [f"{n:02}.md" for n in range(1, 20)]
        assert json.loads(done.stdout) == {"dry_run": False, "vanished": lost, "accepted": True}
        wait_for(server, "index", status="ok")
        assert server.health()[1]["knowledge_base"]["documents"] == 11
        assert not VanishedFiles(data / ".lithos").is_approval_waiting()
    number, gone = await documents(data)
    assert (number, sorted(gone)) == (11, lost)


async def test_no_watch_option_switches_the_watcher_off(tmp_path):
    data = tmp_path / "data"
    put_note(data, "a.md", note(1))
    with running_lithos(data, "--no-watch") as server:
        assert server.health()[1]["watcher"] == {"status": "ok", "mode": "off"}
