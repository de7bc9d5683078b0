"""The frontmatter key `quarantine_reason`: how it is set and cleared, and its length limit.

Specified in docs/spec/context.md §2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lithos.kernel.values.limits import NAME_KEPT
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.writing.messages import MERGE, PatchNote
from tests.servers import Lithos, put_note, refusal, serving


async def quarantine(lithos: Lithos, note: str, reason: str | None = "numbers invented") -> None:
    patch = PatchNote(id=note, agent="eve", status="quarantined", quarantine_reason=reason)
    await lithos.server.get(Knowledge).write(patch)


def text_of(lithos: Lithos, path: str = "a-note.md") -> str:
    return (lithos.knowledge / path).read_text()


async def metadata(lithos: Lithos, note: str) -> dict[str, Any]:
    found: dict[str, Any] = (await lithos.read(note))["metadata"]
    return found


async def test_quarantine_reason_follows_the_status_and_is_cleared_by_active(lithos: Lithos) -> None:
    note = await lithos.create()
    before = text_of(lithos)
    await quarantine(lithos, note)
    shown = await metadata(lithos, note)
    assert (shown["status"], shown["quarantine_reason"]) == ("quarantined", "numbers invented")
    assert list(shown)[list(shown).index("status") + 1] == "quarantine_reason"
    assert "status: quarantined\nquarantine_reason: numbers invented\n---\n" in text_of(lithos)
    await lithos.call("lithos_note_update", id=note, agent="eve", status="active")
    assert "quarantine_reason" not in await metadata(lithos, note)
    assert "quarantine_reason" not in text_of(lithos)
    assert text_of(lithos).partition("\n---\n")[2] == before.partition("\n---\n")[2]
    told = await lithos.call("lithos_history", id=note)
    assert [row["changed"] for row in told["versions"][:2]] == [["status", "quarantine_reason"]] * 2


async def test_full_write_keeps_the_reason_until_the_status_changes(lithos: Lithos) -> None:
    note = await lithos.create()
    for status in ("active", "archived"):
        await quarantine(lithos, note)
        await lithos.write(id=note, content="Mended.")
        assert (await metadata(lithos, note))["quarantine_reason"] == "numbers invented"
        await lithos.write(id=note, status=status)
        assert "quarantine_reason" not in text_of(lithos)


async def test_quarantine_reason_is_ignored_for_a_note_with_another_status(lithos: Lithos) -> None:
    note = await lithos.create()
    await lithos.server.get(Knowledge).write(PatchNote(id=note, agent="eve", quarantine_reason="just so"))
    assert "quarantine_reason" not in text_of(lithos)
    await quarantine(lithos, note, None)
    assert "quarantine_reason" not in text_of(lithos)
    await lithos.server.get(Knowledge).write(PatchNote(id=note, agent="eve", quarantine_reason="just so"))
    assert (await metadata(lithos, note))["quarantine_reason"] == "just so"


async def test_manually_written_reason_is_limited_but_kept_while_unchanged(
    tmp_path: Path,
) -> None:
    head = "id: a\nstatus: active\nquarantine_reason: >-\n  wrong\n  numbers  # kept\n"
    put_note(tmp_path, "a.md", f"---\n{head}---\n\n# A\n\nText.\n")
    put_note(
        tmp_path, "b.md", f"---\nid: b\nstatus: quarantined\nquarantine_reason: {'y' * 5_000}\n---\n# B\n"
    )
    put_note(tmp_path, "c.md", "---\nid: c\nstatus: quarantined\nquarantine_reason: [1, 2]\n---\n# C\n")
    async with serving(tmp_path, settled=False) as lithos:
        assert (await metadata(lithos, "a"))["quarantine_reason"] == "wrong numbers  # kept"
        assert (await metadata(lithos, "b"))["quarantine_reason"] == "y" * NAME_KEPT
        other = await metadata(lithos, "c")
        assert "quarantine_reason" not in other
        assert other["extra"]["quarantine_reason"] == [1, 2], "a list is the person's own"
        await lithos.call("lithos_note_update", id="a", agent="eve", tags=["x"])
        assert "quarantine_reason: >-\n  wrong\n  numbers  # kept\n" in text_of(lithos, "a.md")
        answer = await lithos.call(
            "lithos_note_update", id="a", agent="eve", metadata={"quarantine_reason": "x"}
        )
        assert "quarantine_reason" in refusal(answer, "invalid_input")
    async with serving(tmp_path, settled=False) as lithos:
        assert (await metadata(lithos, "a"))["quarantine_reason"] == "wrong numbers  # kept"


async def test_quarantine_reason_is_merged_like_any_key(lithos: Lithos) -> None:
    note = await lithos.create()
    await quarantine(lithos, note)
    await lithos.call("lithos_note_update", id=note, agent="ann", tags=["x"])
    merged = await lithos.server.get(Knowledge).write(
        PatchNote(id=note, agent="eve", status="active", expected_version=2, on_conflict=MERGE)
    )
    assert merged.merged_with == 3
    shown = await metadata(lithos, note)
    assert (shown["status"], shown["tags"]) == ("active", ["x"])
    assert "quarantine_reason" not in shown


async def test_restored_version_has_its_quarantine_reason(lithos: Lithos) -> None:
    note = await lithos.create()
    await quarantine(lithos, note)
    await lithos.call("lithos_note_update", id=note, agent="eve", status="active")
    await lithos.call("lithos_restore", id=note, version=2, agent="eve")
    assert (await metadata(lithos, note))["quarantine_reason"] == "numbers invented"
