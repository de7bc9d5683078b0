"""The parameter `on_conflict` of `lithos_write` and `lithos_note_update`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.history.settings import HistoryConfig
from tests.servers import Lithos, refusal, serving

TEXT = "first\n\nsecond\n\nthird"
OUTCOME = ["status", "id", "path", "version", "warnings"]


async def write(lithos: Lithos, note: str, expected: int, **more: Any) -> Any:
    arguments = {"id": note, "agent": "ann", "expected_version": expected, "on_conflict": "merge"}
    return await lithos.call("lithos_write", **arguments | more)


async def update(lithos: Lithos, note: str, expected: int, **more: Any) -> Any:
    arguments = {"id": note, "agent": "ann", "expected_version": expected, "on_conflict": "merge"}
    return await lithos.call("lithos_note_update", **arguments | more)


async def test_changes_of_two_agents_to_one_note_are_merged(lithos: Lithos) -> None:
    """behaviour 218"""
    note = await lithos.create("Note", TEXT, tags=["a"])
    plain = await write(lithos, note, 1, content=TEXT.replace("first", "FIRST"))
    assert list(plain) == OUTCOME
    merged = await write(lithos, note, 1, content=TEXT.replace("third", "THIRD"), tags=["a", "b"])
    assert list(merged) == [*OUTCOME, "merged_with"]
    assert (merged["status"], merged["version"], merged["merged_with"]) == ("updated", 3, 2)
    patched = await update(lithos, note, 2, tags=["c"], status="archived", metadata={"k": [1]})
    assert (patched["status"], patched["version"], patched["merged_with"]) == ("updated", 4, 3)
    found = await lithos.read(note)
    assert found["content"] == "FIRST\n\nsecond\n\nTHIRD"
    assert found["metadata"]["tags"] == ["b", "c"]
    assert (found["metadata"]["status"], found["metadata"]["k"]) == ("archived", [1])
    assert [kind for kind, _ in lithos.events()].count("note.updated") == 3


@pytest.mark.parametrize("style", ["envelope", "status"])
async def test_overlapping_change_is_refused_with_all_three_texts(tmp_path: Path, style: str) -> None:
    """behaviours 218, 165"""
    async with serving(tmp_path, server={"write_outcomes": style}) as lithos:
        note = await lithos.create("Note", TEXT)
        await lithos.write("Note", TEXT.replace("second", "theirs"), id=note)
        answer = await write(lithos, note, 1, content=TEXT.replace("second", "m" * 3_000))
        assert list(answer) == [
            "status", "code", "message", "current_version", "current_updated_at", "conflicts", "warnings",
        ]  # fmt: skip
        updated_at = (await lithos.call("lithos_read", id=note))["metadata"]["updated_at"]
        assert answer["current_updated_at"] == updated_at
        assert answer["status"] == ("error" if style == "envelope" else "version_conflict")
        assert (answer["code"], answer["current_version"]) == ("version_conflict", 2)
        assert answer["conflicts"] == [
            {"line": 3, "base": "second\n", "mine": "m" * 2_000, "theirs": "theirs\n"}
        ]
        answer = await update(lithos, note, 1, title="Mine")
        assert answer["merged_with"] == 2
        answer = await update(lithos, note, 1, title="Other")
        assert answer["conflicts"] == [{"key": "title", "base": "Note", "mine": "Other", "theirs": "Mine"}]


async def test_conflicts_are_refused_by_default(lithos: Lithos) -> None:
    """history §3"""
    note = await lithos.create("Note", TEXT)
    await lithos.write("Note", TEXT.replace("second", "theirs"), id=note)
    for more in ({}, {"on_conflict": "refuse"}, {"on_conflict": None}):
        request = {"id": note, "agent": "a", "expected_version": 1, "title": "Note"} | more
        for tool in ("lithos_write", "lithos_note_update"):
            answer = await lithos.call(tool, **request)
            refusal(answer, "version_conflict")
            assert "conflicts" not in answer


async def test_impossible_merge_is_refused(lithos: Lithos) -> None:
    """history §3: `merge` requires an `expected_version`."""
    note = await lithos.create("Note", TEXT)
    for tool in ("lithos_write", "lithos_note_update"):
        request = {"id": note, "agent": "a", "title": "New"}
        answer = await lithos.call(tool, **request, on_conflict="merge")
        assert "expected_version" in refusal(answer, "invalid_input")
        answer = await lithos.call(tool, **request, on_conflict="force", expected_version=1)
        assert "refuse, merge" in refusal(answer, "invalid_input")
    assert (await lithos.read(note))["version"] == 1
    made = await lithos.call("lithos_write", title="T", content="x", agent="a", on_conflict="merge")
    assert made["status"] == "created", "nothing can conflict"


async def test_changes_are_not_merged_without_history(tmp_path: Path) -> None:
    """behaviour 225"""
    async with serving(tmp_path, history=HistoryConfig(enabled=False)) as lithos:
        note = await lithos.create("Note", TEXT)
        assert (await write(lithos, note, 1, title="New"))["version"] == 2
        answer = await write(lithos, note, 1, tags=["t"])
        assert "history.enabled" in refusal(answer, "version_conflict")
        assert answer["current_version"] == 2


async def test_external_save_between_read_and_write_is_merged(lithos: Lithos) -> None:
    """behaviour 219"""
    note = await lithos.create("Note", TEXT)
    version = (await lithos.read(note))["version"]
    file = lithos.knowledge / "note.md"
    file.write_text(file.read_text().replace("first", "by hand"))
    answer = await write(lithos, note, version, content=TEXT.replace("third", "by ann"))
    assert (answer["version"], answer["merged_with"]) == (3, 2)
    assert (await lithos.read(note))["content"] == "by hand\n\nsecond\n\nby ann"


async def test_notes_of_a_served_vault_are_merged(tmp_path: Path) -> None:
    """behaviours 218 and 254: the note has no frontmatter at first, and keeps its heading and line breaks."""
    vault = tmp_path / "vault"
    vault.mkdir()
    file = vault / "Plan.md"
    file.write_bytes(b"# The plan\r\nfirst #tag\r\n\r\nsecond\r\n\r\nthird\r\n")
    async with serving(tmp_path / "data", storage={"vault": vault}) as lithos:
        found = await lithos.call("lithos_read", path="Plan.md")
        note, text = found["id"], found["content"]
        assert text == "# The plan\nfirst #tag\n\nsecond\n\nthird"
        theirs = await write(lithos, note, 1, content=text.replace("second", "by bob"), tags=["bob"])
        assert (theirs["version"], "merged_with" in theirs) == (2, False)
        mine = text.replace("third", "by ann")
        answer = await write(lithos, note, 1, content=mine, tags=["tag", "ann"])
        assert (answer["version"], answer["merged_with"]) == (3, 2)
        assert file.read_bytes().endswith(b"# The plan\r\nfirst #tag\r\n\r\nby bob\r\n\r\nby ann\r\n"), (
            file.read_bytes()
        )
        read = await lithos.read(note)
        assert read["metadata"]["tags"] == ["bob", "ann", "tag"]


async def test_concurrent_merges_by_several_agents_lose_no_change(lithos: Lithos) -> None:
    """behaviour 218: the calls run in real threads."""
    agents, rounds = 6, 5
    text = "\n\n".join(f"paragraph {n}:" for n in range(agents))
    note = await lithos.create("Note", text)

    async def work(number: int) -> None:
        for turn in range(rounds):
            found = await lithos.read(note)
            line = next(
                each for each in found["content"].split("\n") if each.startswith(f"paragraph {number}:")
            )
            changed = found["content"].replace(line, f"{line} {turn}")
            answer = await write(lithos, note, found["version"], content=changed)
            assert answer["status"] == "updated", answer

    async with trio.open_nursery() as nursery:
        for number in range(agents):
            nursery.start_soon(work, number)
    last = await lithos.read(note)
    assert last["content"].split("\n\n") == [
        f"paragraph {n}:" + "".join(f" {turn}" for turn in range(rounds)) for n in range(agents)
    ]
    assert last["version"] == agents * rounds + 1


LONG = {
    "few different lines": "".join("ab"[n * n % 7 % 2] + "\n" for n in range(190_000)),
    "numbered lines": "".join(f"{n}\n" for n in range(140_000)),
    "prose": "".join(f"{n} {'words ' * 20}\n\n" for n in range(7_000)),
}


@pytest.mark.slow
@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize(
    "kind", [kind if n == 0 else pytest.param(kind, marks=pytest.mark.nightly) for n, kind in enumerate(LONG)]
)
async def test_merge_of_long_texts_does_not_block_the_event_loop(
    lithos: Lithos, kind: str, overlaps: bool
) -> None:
    """tools §1.2: no call is delayed by a second of work on the event loop, whatever other calls contain."""
    text = LONG[kind]
    note = await lithos.create("Note", text)
    await lithos.write("Note", "theirs\n" + text, id=note)
    longest, done = 0.0, False

    async def watch() -> None:
        nonlocal longest
        while not done:
            began = time.thread_time()
            await trio.sleep(0.01)
            longest = max(longest, time.thread_time() - began)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        answer = await write(lithos, note, 1, content=f"mine\n{text[::-1]}" if overlaps else text + "mine")
        done = True
    assert answer["status"] == ("error" if overlaps else "updated")
    assert longest < 1.0
