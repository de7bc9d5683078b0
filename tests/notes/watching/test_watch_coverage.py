"""Detection of folders without notifications.

The test counts watches, because the system does not report such folders.
"""

from __future__ import annotations

import gc
import threading
from contextlib import aclosing

import pytest
import trio
import watchfiles

from lithos.kernel.actors.threads import Inline, Threads
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import Put, digest_of
from lithos.notes.watching import notifications
from lithos.notes.watching.notifications import LOOKS, FolderWatch, WatchCoverage, count_watches


@pytest.fixture
def files(tmp_path):
    for name in ("a/b", ".hidden/c"):
        (tmp_path / "knowledge" / name).mkdir(parents=True)
    return NoteFiles(tmp_path / "knowledge")


async def test_one_watch_per_folder_does_not_count_as_a_shortage(files):
    gc.collect()  # Close watchers that other tests left open.
    before = count_watches()
    if before is None:
        pytest.skip("this system does not tell")
    stop = threading.Event()
    changes = watchfiles.watch(files.root, stop_event=stop, rust_timeout=50, yield_on_timeout=True)
    next(changes)
    assert count_watches() == before + 5
    assert await WatchCoverage(files, Inline()).shortage() is None
    stop.set()
    assert next(changes, None) is None
    with trio.fail_after(60):  # The library closes its watches in a separate thread.
        while count_watches() != before:
            await trio.sleep(0.01)


async def test_lasting_watch_shortage_is_reported_and_doubt_triggers_a_recount(files, monkeypatch):
    """behaviour 199"""
    held = [4]
    monkeypatch.setattr(notifications, "count_watches", lambda: held[0])
    coverage = WatchCoverage(files, Inline())
    assert [await coverage.shortage() for _ in range(LOOKS - 1)] == [None] * (LOOKS - 1)
    assert "fs.inotify.max_user_watches" in (await coverage.shortage() or "")
    held[0] = 5
    assert coverage.is_short
    assert await coverage.shortage() is not None
    coverage.doubt()
    assert await coverage.shortage() is None
    held[0] = 4
    assert await coverage.shortage() is None
    assert not coverage.is_short


async def test_write_of_a_nameless_file_reports_only_the_note(files):
    """The kernel also reports a nameless file, as `#` and a number. A folder may have such a name."""
    heard: set[str] = set()
    watch = FolderWatch(files, Threads())
    async with aclosing(watch.notices()) as notices:
        await anext(notices)
        files.apply([Put("a/b/new.md", b"one", None)])
        files.apply([Put("a/b/new.md", b"two", digest_of(b"one"))])
        (files.root / "#12").mkdir()
        with trio.fail_after(60):
            while "#12" not in heard:
                heard |= await anext(notices)
        watch.stop()
    assert heard == {"a/b/new.md", "#12"}


async def test_shortage_is_not_reported_when_watches_cannot_be_counted(files, monkeypatch):
    monkeypatch.setattr(notifications, "_DESCRIPTORS", "/nowhere/fd")
    assert count_watches() is None
    coverage = WatchCoverage(files, Inline())
    assert [await coverage.shortage() for _ in range(LOOKS + 1)] == [None] * (LOOKS + 1)
