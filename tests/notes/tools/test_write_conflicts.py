"""Conflicting writes: duplicates, versions, concurrent calls, and their events."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.events.journal.broadcaster import Broadcaster
from tests.servers import MISSING_ID, Lithos, refusal, serving

URL = "https://example.org/page"


async def together(lithos: Lithos, tool: str, *calls: dict[str, Any]) -> list[dict[str, Any]]:
    """Make all calls concurrently, and return the answers in the order of the calls."""
    answers: list[dict[str, Any]] = [{} for _ in calls]

    async def run(number: int) -> None:
        answers[number] = await lithos.call(tool, **calls[number])

    async with trio.open_nursery() as nursery:
        for number in range(len(calls)):
            nursery.start_soon(run, number)
    return answers


async def test_duplicate_error_names_the_owner_and_no_event_is_emitted(lithos: Lithos) -> None:
    """behaviours 24, 127"""
    owner = await lithos.create("Owner", source_url=URL)
    other, events = await lithos.create("Other"), lithos.events()
    for target in ({"title": "New"}, {"title": "Other", "id": other}):
        answer = await lithos.call("lithos_write", content="x", agent="a", source_url=URL, **target)
        assert "Owner" in refusal(answer, "duplicate")
        assert list(answer)[3:] == ["duplicate_of", "warnings"]
        assert list(answer["duplicate_of"].items()) == [
            ("id", owner),
            ("title", "Owner"),
            ("source_url", URL),
        ]
        assert answer["warnings"] == []
    assert lithos.events() == events
    assert lithos.files() == ["other.md", "owner.md"]


async def test_spellings_of_one_url_count_as_the_same_url(lithos: Lithos) -> None:
    """behaviour 25"""
    for spelling in (
        "HTTPS://EXAMPLE.org/page", "https://example.org/page/", "https://example.org:443/page",
        "https://example.org/page#part", "https://example.org/page?utm_source=x&fbclid=1",
        " https://u:p@example.org/page ",
    ):  # fmt: skip
        note = await lithos.create(source_url=spelling)
        assert (await lithos.read(note))["metadata"]["source_url"] == URL, spelling
        answer = await lithos.call("lithos_write", title="B", content="x", agent="a", source_url=URL)
        refusal(answer, "duplicate")
        await lithos.call("lithos_delete", id=note, agent="a")


async def test_invalid_source_urls_are_refused(lithos: Lithos) -> None:
    """behaviour 26"""
    for bad in (
        "ftp://example.org", "javascript:alert(1)", "example.org/page", "https://", " ", "https://a\nb",
    ):  # fmt: skip
        answer = await lithos.call("lithos_write", title="T", content="x", agent="a", source_url=bad)
        assert "source_url" in refusal(answer, "invalid_input")
    assert lithos.files() == []


async def test_source_url_is_released_by_clearing_and_deletion(lithos: Lithos) -> None:
    """behaviour 27"""
    first = await lithos.create("First", source_url=URL)
    assert (await lithos.write("First", id=first, source_url=URL + "#again"))["version"] == 2
    await lithos.write("First", id=first, source_url="")
    second = await lithos.create("Second", source_url=URL)
    await lithos.call("lithos_delete", id=second, agent="a")
    await lithos.write("First", id=first, source_url=URL)
    assert (await lithos.call("lithos_stats"))["duplicate_urls"] == 0


async def test_one_of_several_concurrent_creations_with_one_url_succeeds(lithos: Lithos) -> None:
    """behaviour 28"""
    calls = [{"title": f"N{i}", "content": "x", "agent": "a", "source_url": URL} for i in range(5)]
    answers = await together(lithos, "lithos_write", *calls)
    (winner,) = [answer for answer in answers if answer["status"] == "created"]
    losers = [answer for answer in answers if answer is not winner]
    assert {answer["code"] for answer in losers} == {"duplicate"}
    assert {answer["duplicate_of"]["id"] for answer in losers} == {winner["id"]}
    assert [kind for kind, _ in lithos.events()] == ["note.created"]


async def test_expected_version_must_be_the_current_version(lithos: Lithos) -> None:
    """behaviours 34, 127"""
    note = await lithos.create("N", expected_version=99)
    assert (await lithos.write("N", id=note, expected_version=1))["version"] == 2
    before, events = (lithos.knowledge / "n.md").read_bytes(), lithos.events()
    updated_at = (await lithos.call("lithos_read", id=note))["metadata"]["updated_at"]
    for stale in (1, 3, 0, -1, 10**18, "1"):
        answer = await lithos.call(
            "lithos_write", id=note, title="N", content="y", agent="a", expected_version=stale
        )
        assert "2" in refusal(answer, "version_conflict")
        assert list(answer.items())[3:] == [
            ("current_version", 2), ("current_updated_at", updated_at), ("warnings", []),
        ]  # fmt: skip
    assert (lithos.knowledge / "n.md").read_bytes() == before
    assert lithos.events() == events


async def test_one_of_several_concurrent_updates_of_one_version_succeeds(lithos: Lithos) -> None:
    """behaviour 35"""
    note = await lithos.create("N")
    calls = [
        {"id": note, "title": "N", "content": f"text {i}", "agent": "a", "expected_version": 1}
        for i in range(6)
    ]
    answers = await together(lithos, "lithos_write", *calls)
    codes = Counter(answer.get("code", answer["status"]) for answer in answers)
    assert codes == {"updated": 1, "version_conflict": 5}
    assert {a["current_version"] for a in answers if "code" in a} == {2}
    winner = next(i for i, answer in enumerate(answers) if "code" not in answer)
    assert (await lithos.read(note))["content"] == f"text {winner}"


async def test_update_starts_from_the_note_as_edited_on_disk(lithos: Lithos) -> None:
    """behaviour 34: the version in the file is the current version."""
    note = await lithos.create("N", tags=["kept"])
    file = lithos.knowledge / "n.md"
    file.write_text(file.read_text().replace("version: 1\n", "version: 5\nhand: made\n"))
    answer = await lithos.call("lithos_write", id=note, title="N", content="y", agent="a", expected_version=1)
    assert answer["current_version"] == 5
    assert (await lithos.write("N", id=note, expected_version=5))["version"] == 6
    assert (await lithos.read(note))["metadata"]["extra"] == {"hand": "made"}


async def test_write_to_an_unknown_id_is_refused_without_an_event(lithos: Lithos) -> None:
    """behaviour 127"""
    for note_id in (MISSING_ID, "nonsense", "../x", " ", "x" * 5000):
        for tool, more in (("lithos_write", {"title": "T", "content": "x"}), ("lithos_delete", {})):
            answer = await lithos.call(tool, id=note_id, agent="a", **more)
            message = refusal(answer, "doc_not_found" if note_id.strip() else "invalid_input")
            assert len(message) < 500
    assert lithos.events() == []
    assert lithos.files() == []


@pytest.mark.parametrize("style", ["envelope", "status"])
async def test_write_outcome_can_be_returned_as_status(tmp_path: Path, style: str) -> None:
    """behaviour 165"""
    async with serving(tmp_path, server={"write_outcomes": style}) as lithos:
        note = await lithos.create("Owner", source_url=URL)
        request = {"title": "Other", "content": "x", "agent": "a"}
        outcomes = {
            "version_conflict": {"id": note, "expected_version": 9},
            "slug_collision": {"title": "Owner"},
            "path_collision": {"path": "owner.md"},
            "duplicate": {"source_url": URL},
        }
        for code, change in outcomes.items():
            answer = await lithos.call("lithos_write", **request | change)
            assert (answer["status"], answer["code"]) == ("error" if style == "envelope" else code, code)
            assert answer["warnings"] == []
        for code, change in {
            "doc_not_found": {"id": MISSING_ID},
            "invalid_input": {"confidence": 7},
            "content_too_large": {"content": "x" * 1_000_001},
        }.items():
            answer = await lithos.call("lithos_write", **request | change)
            assert (answer["status"], answer["code"]) == ("error", code)


async def test_many_concurrent_changes_leave_a_consistent_state(lithos: Lithos) -> None:
    """behaviour 50"""
    notes = [await lithos.create(f"Storm {i}", f"zebra {i}", tags=["storm"]) for i in range(6)]

    async def churn(note: str, delete: bool) -> None:
        for round_number in range(3):
            await lithos.call(
                "lithos_write", id=note, title=f"Storm {note[:8]} {round_number}", content="zebra lion",
                agent="a", tags=["storm", note],
            )  # fmt: skip
        if delete:
            async with trio.open_nursery() as inner:
                for tool, more in (
                    ("lithos_write", {"title": f"Storm {note[:8]} 9", "content": "zebra"}),
                    ("lithos_delete", {}),
                    ("lithos_read", None),
                ):
                    arguments = {"id": note} if more is None else {"id": note, "agent": "a", **more}
                    inner.start_soon(lambda t=tool, a=arguments: lithos.call(t, **a))

    async with trio.open_nursery() as nursery:
        for number, note in enumerate(notes):
            nursery.start_soon(churn, note, number % 2 == 0)
    kept = {note for note in notes if "status" not in await lithos.call("lithos_read", id=note)}
    assert kept == set(notes[1::2])
    for mode in ("fulltext", "hybrid"):
        rows = (await lithos.call("lithos_search", query="zebra", mode=mode))["results"]
        assert {row["id"] for row in rows} == kept
    stats = await lithos.call("lithos_stats")
    assert (stats["documents"], stats["tantivy_doc_count"], stats["chunks"]) == (3, 3, 3)
    assert not stats["index_drift_detected"]
    assert (await lithos.call("lithos_tags"))["tags"] == {"storm": 3} | dict.fromkeys(kept, 1)
    assert len(lithos.files()) == 3
    last = {payload["id"]: kind for kind, payload in lithos.events()}
    assert {note for note, kind in last.items() if kind != "note.deleted"} == kept


async def test_write_answers_agree_with_their_events(lithos: Lithos) -> None:
    """behaviour 23"""
    created = await lithos.write("First", tags=["x"], path="f")
    updated = await lithos.write("Second", id=created["id"])
    assert list(updated) == ["status", "id", "path", "version", "warnings"]
    assert (updated["status"], updated["version"]) == ("updated", 2)
    await lithos.call("lithos_delete", id=created["id"], agent="a")
    payload = {"id": created["id"], "title": "First", "path": "f/first.md"}
    assert lithos.events() == [
        ("note.created", payload),
        ("note.updated", payload | {"title": "Second"}),
        ("note.deleted", {"id": created["id"], "path": "f/first.md"}),
    ]
    assert [event.draft.tags for event in lithos.server.get(Broadcaster).recent] == [("x",)] * 3
