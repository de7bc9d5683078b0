"""Following transcripts as they grow, are damaged, replaced and deleted. The clock jumps over pauses."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import trio

from lithos.sessions.files.added_folders import find_folder, write_added
from lithos.sessions.files.lines import LONGEST_LINE
from lithos.sessions.following.follower import NO_MASK
from lithos.sessions.model.session import MOST_OUTPUT
from lithos.sessions.rows.schema import SESSIONS
from lithos.sessions.rows.store import Embedding
from tests.sessions.transcripts import MASK, answer, following, prompt, tool_output

pytestmark = pytest.mark.autojump


def state_of(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return content, modification time and mode of every file, and that of every folder."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        info = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (data, info.st_mtime_ns, stat.S_IMODE(info.st_mode))
    return found


async def test_sentence_is_found_with_its_turn_within_a_minute(tmp_path: Path) -> None:
    """Behaviour 327."""
    async with following(tmp_path) as index:
        index.put("a.jsonl", prompt("Why are customers signed out?"))
        await index.follower.caught_up()
        index.grow("a.jsonl", answer("The cookie expires at local midnight."))
        await trio.sleep(60)
        hit = (await index.sessions.search("cookie expires at local midnight"))[0]
        assert (hit.number, hit.turn.text) == (2, "The cookie expires at local midnight.")
        assert (hit.session.title, hit.session.turns) == ("Why are customers signed out?", 2)


async def test_transcripts_are_not_changed(tmp_path: Path) -> None:
    """Behaviour 328: neither content nor times nor modes, and no file is added next to them."""
    async with following(tmp_path) as index:
        path = index.put("deep/a.jsonl", prompt("Hello"), "damaged\n", '{"cut":')
        index.put("b.jsonl", prompt("Bye", "s2"))
        path.chmod(0o400)
        before = state_of(index.folder)
        await index.follower.caught_up()
        await index.sessions.forget((await index.sessions.list()).sessions[0].id)
        await index.follower.caught_up()
        assert state_of(index.folder) == before


async def test_growing_transcript_extends_its_last_turn(tmp_path: Path) -> None:
    async with following(tmp_path) as index:
        index.put("a.jsonl", prompt("Hello"), answer("First", key="m"))
        await index.follower.caught_up()
        index.grow("a.jsonl", answer("Second", key="m"), tool_output("o" * 1_000))
        await index.follower.caught_up()
        (session,) = (await index.sessions.list()).sessions
        part = await index.sessions.turns(session.id)
        assert part is not None
        assert [turn.text for turn in part.turns] == ["Hello", "First\n\nSecond"]
        assert part.turns[1].outputs == ("o" * MOST_OUTPUT,)
        assert await index.found("second first") == ["First\n\nSecond"]


async def test_only_new_bytes_of_a_growing_transcript_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with following(tmp_path) as index:
        path = index.put("a.jsonl", *[prompt(f"Prompt {n} {'x' * 500}") for n in range(2_000)])
        await index.follower.caught_up()
        read = 0
        original = os.pread

        def count(descriptor: int, length: int, offset: int) -> bytes:
            nonlocal read
            data = original(descriptor, length, offset)
            read += len(data)
            return data

        monkeypatch.setattr(os, "pread", count)
        index.grow("a.jsonl", prompt("One more zebra"))
        await index.follower.caught_up()
        assert await index.found("zebra") == ["One more zebra"]
        assert read < 4_096 < path.stat().st_size


async def test_damaged_lines_are_skipped_and_reported(tmp_path: Path) -> None:
    """Behaviour 331: damage."""
    async with following(tmp_path) as index:
        index.put("a.jsonl", prompt("Hello"), "{damaged\n", "[1]\n", prompt("World"))
        with (index.folder / "a.jsonl").open("ab") as file:
            file.write(b'{"type":"user","sessionId":"s1","message":{"content":"caf\xe9"}}\n')
        await index.follower.caught_up()
        assert await index.texts() == ["Hello", "World", "caf\ufffd"]
        notices = await index.notices()
        assert "Not read: 1 damaged lines." in notices
        assert "Not read: 1 lines that are not a JSON object." in notices
        assert index.sessions.status().problem_count == 1


async def test_cut_last_line_waits_for_its_rest(tmp_path: Path) -> None:
    """Behaviour 331: a transcript that is cut within a line."""
    line = prompt("A whole prompt")
    async with following(tmp_path) as index:
        index.put("a.jsonl", prompt("Hello"), line[:40])
        await index.follower.caught_up()
        assert await index.texts() == ["Hello"]
        assert "The last line is incomplete (40 bytes)" in await index.notices()
        index.grow("a.jsonl", line[40:])
        await index.follower.caught_up()
        assert await index.texts() == ["Hello", "A whole prompt"]
        assert await index.notices() == ""


async def test_last_line_without_a_line_break_is_read_if_it_is_whole(tmp_path: Path) -> None:
    async with following(tmp_path) as index:
        index.put("a.jsonl", prompt("Hello").rstrip("\n"))
        await index.follower.caught_up()
        index.grow("a.jsonl", "\n", prompt("World"))
        await index.follower.caught_up()
        assert await index.texts() == ["Hello", "World"]


async def test_line_beyond_the_limit_is_skipped_and_reported(tmp_path: Path) -> None:
    async with following(tmp_path) as index:
        index.put("a.jsonl", prompt("Hello"), prompt("x" * (LONGEST_LINE + 10)), prompt("World"))
        await index.follower.caught_up()
        assert await index.texts() == ["Hello", "World"]
        assert "Not read: 1 lines of more than 4 MiB." in await index.notices()


@pytest.mark.parametrize("keeps_inode", [True, False])
async def test_rewritten_transcript_is_read_again(tmp_path: Path, keeps_inode: bool) -> None:
    """Behaviour 331: a transcript that shrinks, or is replaced by another of the same session."""
    async with following(tmp_path) as index:
        path = index.put("a.jsonl", prompt("Old zebra"), answer("Old answer"))
        await index.follower.caught_up()
        if keeps_inode:
            path.write_text(prompt("New"))
        else:
            (tmp_path / "new").write_text(prompt("New") + answer("A longer answer than before, by far."))
            os.replace(tmp_path / "new", path)
        await index.follower.caught_up()
        assert (await index.texts())[0] == "New"
        assert await index.found("zebra") == []
        assert "read again from its beginning" in await index.notices()
        assert (await index.sessions.list()).total == 1


async def test_transcript_of_another_session_keeps_the_earlier_one(tmp_path: Path) -> None:
    """Behaviour 331: rotation. The earlier session is kept like one whose transcript was deleted."""
    async with following(tmp_path) as index:
        path = index.put("a.jsonl", prompt("First session zebra", "s1"))
        await index.follower.caught_up()
        path.write_text(prompt("Second session lion", "s2"))
        await index.follower.caught_up()
        assert await index.found("zebra") == ["First session zebra"]
        assert await index.found("lion") == ["Second session lion"]
        (old,) = [each for each in (await index.sessions.list()).sessions if each.gone_at is not None]
        assert old.title == "First session zebra"


async def test_emptied_transcript_keeps_what_was_read(tmp_path: Path) -> None:
    async with following(tmp_path) as index:
        path = index.put("a.jsonl", prompt("Zebra"), prompt("Lion"))
        await index.follower.caught_up()
        path.write_text("")
        await index.follower.caught_up()
        assert await index.texts() == ["Zebra", "Lion"]
        path.write_text(prompt("Elephant"))
        await index.follower.caught_up()
        assert await index.texts() == ["Elephant"]


async def test_moved_transcript_keeps_its_session(tmp_path: Path) -> None:
    async with following(tmp_path) as index:
        path = index.put("a.jsonl", prompt("Zebra"))
        await index.follower.caught_up()
        (before,) = (await index.sessions.list()).sessions
        path.rename(index.folder / "moved.jsonl")
        await index.follower.caught_up()
        (after,) = (await index.sessions.list()).sessions
        assert (after.id, after.gone_at, after.turns) == (before.id, None, 1)
        assert after.path.endswith("moved.jsonl")


async def test_copy_of_a_transcript_is_another_session_but_found_once(tmp_path: Path) -> None:
    async with following(tmp_path) as index:
        index.put("a.jsonl", prompt("Zebra"))
        await index.follower.caught_up()
        index.put("b.jsonl", prompt("Zebra"), prompt("Lion"))
        await index.follower.caught_up()
        assert (await index.sessions.list()).total == 2
        assert (await index.found("zebra")).count("Zebra") == 1


@pytest.mark.parametrize("keep_days", [0, 30])
async def test_text_of_a_deleted_transcript_is_kept_for_keep_days(tmp_path: Path, keep_days: int) -> None:
    async with following(tmp_path, keep_days=keep_days) as index:
        index.put("a.jsonl", prompt("Zebra")).unlink()
        path = index.put("a.jsonl", prompt("Zebra"))
        await index.follower.caught_up()
        path.unlink()
        await index.follower.caught_up()
        assert await index.found("zebra") == (["Zebra"] if keep_days else [])
        index.clock.advance(days=keep_days, seconds=1)
        await index.follower.caught_up()
        assert await index.found("zebra") == []
        assert (await index.sessions.list()).total == 0
        assert index.store.projects() in ({}, {0: None})


async def test_forgotten_session_is_not_indexed_again(tmp_path: Path) -> None:
    async with following(tmp_path) as index:
        index.put("a.jsonl", prompt("Zebra"))
        await index.follower.caught_up()
        (session,) = (await index.sessions.list()).sessions
        assert await index.sessions.forget(session.id)
        assert not await index.sessions.forget(session.id)
        index.grow("a.jsonl", prompt("Lion"))
        await index.follower.caught_up()
        assert (await index.sessions.list()).total == 0
    async with following(tmp_path) as index:
        index.grow("a.jsonl", prompt("Elephant"))
        await index.follower.caught_up()
        assert (await index.sessions.list()).total == 0


async def test_progress_survives_a_restart(tmp_path: Path) -> None:
    async with following(tmp_path) as index:
        index.put("a.jsonl", prompt("Zebra"), answer("First", key="m"))
        await index.follower.caught_up()
    async with following(tmp_path) as index:
        index.grow("a.jsonl", answer("Second", key="m"))
        await index.follower.caught_up()
        assert await index.texts() == ["Zebra", "First\n\nSecond"]


async def test_secrets_are_masked_before_they_are_stored(tmp_path: Path) -> None:
    async with following(tmp_path, mask=MASK) as index:
        index.put("hunter.jsonl", prompt("My password is hunter2"), answer("ok"), tool_output("hunter2"))
        await index.follower.caught_up()
        assert await index.found("password") == ["My password is [secret: password]", "ok"]
        assert (await index.sessions.list()).sessions[0].title == "My password is [secret: password]"
    stored = b"".join(path.read_bytes() for path in (tmp_path / "own").iterdir())
    assert b"hunter2" not in stored


async def test_nothing_is_read_without_a_mask(tmp_path: Path) -> None:
    async with following(tmp_path, mask=None) as index:
        index.put("a.jsonl", prompt("Zebra"))
        await index.follower.caught_up()
        status = index.sessions.status()
        assert (status.sessions, status.trouble) == (0, NO_MASK)
        assert not (tmp_path / "own" / SESSIONS).exists()


async def test_nothing_is_stored_if_no_folder_is_added(tmp_path: Path) -> None:
    async with following(tmp_path, folders=()) as index:
        index.put("a.jsonl", prompt("Zebra"))
        await index.follower.caught_up()
        assert not index.sessions.status().is_enabled
        assert await index.found("zebra") == []
        assert not (tmp_path / "own" / SESSIONS).exists()


async def test_folder_of_the_command_is_followed_and_removed_without_a_restart(tmp_path: Path) -> None:
    async with following(tmp_path, folders=()) as index:
        path = index.put("a.jsonl", prompt("Zebra"))
        gone = index.put("b.jsonl", prompt("Lion", "s2"))
        write_added(tmp_path / "own", [find_folder(str(path.parent), {})])
        await index.follower.caught_up()
        gone.unlink()
        await index.follower.caught_up()
        assert sorted(await index.found("zebra lion")) == ["Lion", "Zebra"]
        write_added(tmp_path / "own", [])
        await index.follower.caught_up()
        assert (await index.sessions.list()).total == 0
        assert path.exists()


async def test_unreadable_transcript_is_reported_and_read_later(tmp_path: Path) -> None:
    async with following(tmp_path) as index:
        index.put("b.jsonl", prompt("Lion", "s2"))
        path = index.put("a.jsonl", "")
        path.write_bytes(prompt("Zebra").encode("utf-16"))
        await index.follower.caught_up()
        (problem,) = index.sessions.status().problems
        assert problem.reasons == ("The transcript is UTF-16 or UTF-32. Only UTF-8 is read.",)
        path.write_text(prompt("A zebra in UTF-8"))
        await index.follower.caught_up()
        assert index.sessions.status().problem_count == 0
        assert sorted(await index.found("zebra lion")) == ["A zebra in UTF-8", "Lion"]


async def test_turns_are_embedded_again_with_another_model(tmp_path: Path) -> None:
    async with following(tmp_path, embedding=Embedding) as index:
        index.put("a.jsonl", prompt("The striped animal on the savanna"))
        await index.follower.caught_up()
        assert index.sessions.status().embedded == 0
    async with following(tmp_path) as index:
        await index.follower.caught_up()
        assert (index.sessions.status().turns, index.sessions.status().embedded) == (1, 1)


async def test_turn_without_a_time_has_that_of_its_transcript(tmp_path: Path) -> None:
    async with following(tmp_path) as index:
        path = index.put("a.jsonl", '{"role": "user", "content": "A zebra"}\n')
        os.utime(path, (1_795_690_000, 1_795_690_000))
        await index.follower.caught_up()
        (session,) = (await index.sessions.list()).sessions
        assert session.ended is not None
        assert (session.client, int(session.ended.timestamp())) == ("other", 1_795_690_000)
