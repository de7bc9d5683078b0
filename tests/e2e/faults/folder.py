"""External changes to a notes folder, as volumes, sync programs and people make them."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from random import Random

import trio

from tests.e2e.clients import WireClient
from tests.e2e.faults import Outcome
from tests.e2e.faults.scene import Scene, note_id, note_text, scene
from tests.e2e.process import running_lithos

NOTES = 60
#: Pause between pieces in seconds. It is longer than the debounce time, so each piece is a separate batch.
PIECE_PAUSE = 0.7
#: Pause between two renames in seconds. With this pause, the storm takes several batches.
STORM_PAUSE = 0.002


async def volume_vanishes(folder: Path) -> Outcome:
    """Remove `knowledge/` and restore it: unchanged, after an empty mount point, and as a copy."""
    times = 0
    async with scene(folder, NOTES) as it:
        away = it.data / "away"
        for empty_mount_point in (False, True):
            for as_copy in (False, True):
                it.folder.rename(away)
                if empty_mount_point:
                    it.folder.mkdir()
                await it.until_healthy("index", status="degraded", vanished=NOTES)
                await _expect_unreadable(it)
                if empty_mount_point:
                    it.folder.rmdir()
                if as_copy:
                    shutil.copytree(away, it.folder)
                    shutil.rmtree(away)
                else:
                    away.rename(it.folder)
                await it.verify()
                times += 1
        assert not it.events, f"nothing changed, yet {it.told}"
        it.put(3, "part-3/note-3.md", "changedword")
        await it.verify()
        assert it.told == {"note.updated": 1}
    return Outcome(
        f"{times} times {NOTES} notes gone and back (folder missing, empty mount; the same files, a copy)",
        "nothing removed, no event, reads say that the file is missing, /health degraded meanwhile; "
        "an edit afterwards is found",
    )


async def _expect_unreadable(it: Scene) -> None:
    answer = await it.client.call("lithos_read", id=note_id(0))
    assert (answer["status"], answer["code"]) == ("error", "doc_not_found"), answer
    assert len(await it.listed()) == NOTES


async def file_in_pieces(folder: Path) -> Outcome:
    """Write long files piece by piece, at intervals that are longer than the watcher's wait."""
    files, pieces = 3, 6
    async with scene(folder, 5) as it:
        for piece in range(pieces):
            for number in range(files):
                text = note_text(100 + number, f"slow{number}x") + "filler words\n" * 400
                size = len(text) // pieces + 1
                with (it.folder / f"slow-{number}.md").open("a") as file:
                    file.write(text[piece * size : (piece + 1) * size])
            await trio.sleep(PIECE_PAUSE)
        for number in range(files):
            it.words[f"slow-{number}.md"] = f"slow{number}x"
        await it.verify()
        told = it.told
        assert told["note.created"] == files
        assert told["note.deleted"] == 0
        assert (await it.client.call("lithos_read", path="slow-1.md"))["content"].count("filler") == 400
        # The files above contain their id in the first piece. This file is cut in its frontmatter, before the
        # id.
        cut = it.folder / "cut.md"
        text = note_text(200, "cutword")
        cut.write_text(text[:20])
        await trio.sleep(PIECE_PAUSE)
        cut.write_text(text)
        it.words["cut.md"] = "cutword"
        await it.verify()
    return Outcome(
        f"{files} files in {pieces} pieces each, one cut inside its frontmatter",
        f"each created once and complete in the end; {told['note.updated']} updates between",
    )


async def rapid_touches(folder: Path, touches: int = 10_000) -> Outcome:
    """Touch files and rewrite them with the same bytes, as fast as the disk allows."""
    async with scene(folder, NOTES) as it:
        files = [it.folder / path for path in it.words]

        def touch() -> None:
            for number in range(touches):
                file = files[number % NOTES]
                if number % 4:
                    os.utime(file)
                else:
                    file.write_bytes(file.read_bytes())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, touch)
            for _ in range(20):
                await it.client.call("lithos_write", title="Meanwhile", content="x", agent="a", path="own")
        note = (await it.client.call("lithos_search", query="meanwhile", mode="fulltext"))["results"][0]
        await it.client.call("lithos_delete", id=note["id"], agent="a")
        seconds = await it.is_quick("quickword")
        await it.verify()
        quiet = {"note.created": 2, "note.deleted": 1}
        assert it.told == quiet, it.told
    return Outcome(
        f"{touches} touches of {NOTES} files, writes through tools meanwhile",
        f"no event of a touch; the next edit was found after {seconds:.2f} s",
    )


async def rename_storm(folder: Path, renames: int = 2_000, mode: str = "auto") -> Outcome:
    """Rename and move files continuously, including swaps and whole folders."""
    random = Random(5)
    async with scene(folder, NOTES, LITHOS_INDEX__WATCH_MODE=mode) as it:

        def storm() -> None:
            for number in range(renames):
                path = random.choice(list(it.words))
                if number % 10 == 9:  # swap the names of two files
                    other = random.choice([one for one in it.words if one != path])
                    _exchange(it, path, other)
                else:
                    target = f"part-{random.randrange(9)}/name-{number}.md"
                    (it.folder / target).parent.mkdir(exist_ok=True)
                    (it.folder / path).rename(it.folder / target)
                    it.words[target] = it.words.pop(path)
                time.sleep(STORM_PAUSE)
            moved = {path: word for path, word in it.words.items() if path.startswith("part-1/")}
            (it.folder / "part-1").rename(it.folder / "whole")
            for path, word in moved.items():
                del it.words[path]
                it.words["whole/" + path.removeprefix("part-1/")] = word

        await trio.to_thread.run_sync(storm)
        await it.verify()
        assert set(await it.listed()) == set(it.first), "an id was lost"
        told = it.told
        assert told.keys() == {"note.renamed"}, told
    return Outcome(
        f"{renames} renames of {NOTES} notes, every tenth a swap, and of one whole folder",
        f"every id kept its note; {told['note.renamed']} renames told and nothing else",
    )


def _exchange(it: Scene, one: str, other: str) -> None:
    spare = it.folder / "spare.tmp"
    (it.folder / one).rename(spare)
    (it.folder / other).rename(it.folder / one)
    spare.rename(it.folder / other)
    it.words[one], it.words[other] = it.words[other], it.words[one]


async def strange_names(folder: Path) -> Outcome:
    """Create names that are not UTF-8, names that differ only in letter case, and circular links."""
    async with scene(folder, 10) as it:
        root = os.fsencode(it.folder)
        broken = [root + b"/caf\xe9.md", root + b"/\xff\xfe/inner.md", root + b"/ok\xc3.md"]
        os.mkdir(root + b"/\xff\xfe")
        for number, name in enumerate(broken):
            with open(name, "w") as file:
                file.write(note_text(300 + number, f"brokenname{number}"))
        (it.folder / "circle").symlink_to(it.folder)
        (it.folder / "part-1/up").symlink_to("..")
        (it.folder / "self.md").symlink_to("self.md")
        (it.folder / "nowhere.md").symlink_to("missing.md")
        (it.folder / "ping").symlink_to("pong")
        (it.folder / "pong").symlink_to("ping")
        it.put(310, "Größe/日本.md", "umlautword")
        await it.verify()
        renames = 0
        for path in ("part-0/note-0.md", "part-1/note-1.md"):
            changed = path.replace("note", "NOTE")
            for source, target in ((path, changed), (changed, path), (path, changed)):
                (it.folder / source).rename(it.folder / target)
                it.words[target] = it.words.pop(source)
                await it.verify()
                renames += 1
        assert it.told == {"note.created": 1, "note.renamed": renames}, it.told
        for number in range(len(broken)):
            assert await it.found(f"brokenname{number}") == []
        assert all(os.path.exists(name) for name in broken)
    with_restart = await _restart_with(it)
    return Outcome(
        f"{len(broken)} names that are no UTF-8, {renames} renames of case only, "
        "6 links in circles or to nowhere",
        f"ids kept, every rename told once, the strange names left alone; {with_restart} after a restart",
    )


async def _restart_with(before: Scene) -> str:
    number = len(before.events)
    with running_lithos(before.data) as server:
        async with WireClient.open(server.address) as client:
            again = Scene(before.data, server, client, before.words)
            await again.until_true()
    assert len(before.events) == number
    return "the same notes and no event"
