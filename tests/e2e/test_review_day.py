"""A day of three agents and a person who looks at what one of them proposes (behaviours 278 to 282)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.clients import call, connected
from tests.e2e.process import Lithos, run_lithos, start_lithos, wait_until_well
from tests.e2e.test_tokens import create

pytestmark = [pytest.mark.slow, pytest.mark.disk]

#: What the agent `junior` proposes: twelve changes, of all kinds.
FOLDER = "handbook"


def lithos(data: Path, *arguments: str) -> Any:
    """What a command prints as JSON, and its exit code."""
    done = run_lithos("-d", data, "--json", *arguments)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def restart(server: Lithos, data: Path) -> Lithos:
    """The server after `kill -9`."""
    server.kill()
    server.close()
    again = start_lithos(data)
    wait_until_well(again)
    return again


async def as_agent(server: Lithos, token: str, tool: str, **arguments: Any) -> dict[str, Any]:
    async with connected("mcp", url=server.url, token=token) as client:
        return await call(client, tool, **arguments)


async def propose_all(server: Lithos, token: str, notes: dict[str, str]) -> dict[str, str]:
    """Twelve proposals, by name."""
    made: dict[str, str] = {}
    async with connected("mcp", url=server.url, token=token) as client:

        async def propose(name: str, tool: str, **arguments: Any) -> None:
            answer = await call(client, tool, **arguments)
            assert answer["status"] == "proposed", answer
            made[name] = answer["proposal_id"]

        for number in range(6):
            await propose(
                f"edit {number}", "lithos_note_edit", id=notes[f"Page {number}"], op="append", text="Junior."
            )
        for number in (6, 7):
            text = f"Page {number}.\n\nRewritten.\n\nThree."
            await propose(f"rewrite {number}", "lithos_write", id=notes[f"Page {number}"], content=text)
        await propose("tags", "lithos_note_update", id=notes["Page 8"], tags=["checked"])
        await propose("new", "lithos_write", title="Glossary", content="Terms.", path=FOLDER)
        await propose("move", "lithos_note_move", id=notes["Page 9"], path=f"{FOLDER}/old")
        await propose("delete", "lithos_delete", id=notes["Page 10"])
    assert len(set(made.values())) == 12
    return made


@pytest.mark.takes(60)
@pytest.mark.deadline(600)
async def test_a_day_of_proposals(tmp_path: Path) -> None:
    """Twelve proposals; a person edits two of the notes meanwhile, approves nine of which one conflicts, and
    rejects three; the server is killed twice. Nothing is lost or done twice, and everybody hears."""
    data = tmp_path / "data"
    senior, other = create(data, "senior", "--agent", "senior"), create(data, "other", "--agent", "other")
    junior = create(data, "junior", "--agent", "junior", "--write", "notes/", "--propose", f"{FOLDER}/")
    server = start_lithos(data)
    try:
        notes: dict[str, str] = {}
        for number in range(12):
            page = await as_agent(
                server, senior, "lithos_write", title=f"Page {number}", path=FOLDER,
                content=f"Page {number}.\n\nTwo.\n\nThree.",
            )  # fmt: skip
            notes[f"Page {number}"] = page["id"]
        outside = await as_agent(server, junior, "lithos_write", title="Elsewhere", content="x", path="top")
        assert outside["code"] == "forbidden"
        own = await as_agent(server, junior, "lithos_write", title="Mine", content="x", path="notes")
        assert own["status"] == "created"
        cursor = (await as_agent(server, junior, "lithos_context", query="page"))["cursor"]
        made = await propose_all(server, junior, notes)
        folder = data / "knowledge" / FOLDER
        before = {path.name: path.read_bytes() for path in folder.glob("*.md")}
        assert not any(b"Junior." in text or b"Rewritten." in text for text in before.values())

        server = restart(server, data)
        waiting = await as_agent(server, other, "lithos_proposals")
        assert {row["id"] for row in waiting["proposals"]} == set(made.values())
        assert {path.name: path.read_bytes() for path in folder.glob("*.md")} == before

        # A person saves two of the notes in an editor: one beside what is proposed, one in the same line.
        beside, same = folder / "page-0.md", folder / "page-6.md"
        beside.write_bytes(before["page-0.md"].replace(b"Two.", b"Two, by hand."))
        same.write_bytes(before["page-6.md"].replace(b"Two.", b"Two, by hand."))
        async with connected("mcp", url=server.url, token=senior) as client:
            for name in ("Page 0", "Page 6"):
                await until_read(client, notes[name], "by hand")
            await call(client, "lithos_note_edit", id=notes["Page 1"], op="prepend", text="Senior.")

        wanted = [f"edit {number}" for number in range(4)] + ["rewrite 7", "rewrite 6", "tags", "new", "move"]
        answers = {
            name: lithos(data, "proposals", "approve", made[name], "--yes")["proposals"][0] for name in wanted
        }
        told = {name: answer["status"] for name, answer in answers.items()}
        assert [name for name, status in told.items() if status != "approved"] == ["rewrite 6"]
        assert answers["rewrite 6"]["conflicts"][0]["theirs"].strip() == "Two, by hand."

        server = restart(server, data)
        for name in ("edit 4", "edit 5", "delete"):
            done = lithos(data, "proposals", "reject", made[name], "--reason", f"No {name}.")
            assert done["proposals"][0]["status"] == "rejected"
        again = run_lithos("-d", data, "proposals", "approve", made["edit 0"], "--yes")
        assert again.returncode == 1
        assert "already" in again.stdout + again.stderr

        # What everybody sees.
        pages = {path.stem: path.read_text() for path in folder.rglob("*.md")}
        assert "Two, by hand." in pages["page-0"]
        assert pages["page-0"].count("Junior.") == 1
        assert pages["page-1"].count("Junior.") == pages["page-1"].count("Senior.") == 1
        assert "by hand" in pages["page-6"]
        assert "Rewritten." not in pages["page-6"]
        assert "Rewritten." in pages["page-7"]
        assert "Junior." not in pages["page-4"] + pages["page-5"]
        assert (folder / "old" / "page-9.md").exists()
        assert "page-10" in pages
        assert "Terms." in pages["glossary"]
        left = await as_agent(server, other, "lithos_proposals")
        assert [row["id"] for row in left["proposals"]] == [made["rewrite 6"]]
        news = await as_agent(server, junior, "lithos_context", query="page", since=cursor, budget=4_000)
        for name in ("edit 4", "edit 5", "delete"):
            assert f"No {name}." in news["text"]
        assert news["text"].count("was approved by") == 8
        for name, versions in (("Page 0", 3), ("Page 2", 2), ("Page 8", 2)):
            history = await as_agent(server, senior, "lithos_history", id=notes[name])
            newest = history["versions"][0]
            assert (newest["agent"], bool(newest["approved_by"])) == ("junior", True)
            assert history["total"] == versions
        approved = lithos(data, "proposals", "--status", "approved")["proposals"]
        assert {row["id"] for row in approved} == {made[name] for name in wanted if name != "rewrite 6"}
    finally:
        server.close()


async def until_read(client: Any, note_id: str, text: str) -> None:
    """Until the note is served with what somebody saved."""
    for _ in range(1_000):
        if text in (await call(client, "lithos_read", id=note_id))["content"]:
            return
    raise AssertionError(f"{text!r} is not served")
