"""Console of a server that lacks one of the optional capabilities."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.app import capabilities
from tests.server.console.visiting import visiting

PAGES = ("", "search", "notes", "graph", "tasks", "agents", "system", "care", "copies", "receipts")


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        pytest.param(name, gone, marks=pytest.mark.needs(name))
        for name, gone in (("proposals", "review"), ("imports", "import"), ("attachments", "attachments"))
    ],
)
async def test_other_pages_render_without_an_optional_capability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, gone: str
) -> None:
    rest = tuple(each for each in capabilities.CAPABILITIES if each.name != name)
    assert len(rest) == len(capabilities.CAPABILITIES) - 1
    async with visiting(tmp_path) as person:
        monkeypatch.setattr(capabilities, "CAPABILITIES", rest)  # pages are added at the first request
        note, picture = await person.lithos.create("A note", "![[plan.pdf]]"), "/console/files/none.png"
        task = (await person.lithos.call("lithos_task_create", title="A task", agent="a"))["task_id"]
        for path in (*PAGES, f"notes/{note}", f"tasks/{task}", "agents/a"):
            page = await person.look(f"/console/{path}")
            assert f"/console/{gone}" not in page.links
        assert (await person.get(f"/console/{gone}")).status_code == 404
        assert "does not exist in the vault" in (await person.get(picture)).text


@pytest.mark.needs("proposals")
def test_navigation_lists_entries_of_all_capabilities() -> None:
    """docs/spec/console.md §2: checks the order of the entries and their keys."""
    links = capabilities.pages().links
    assert [link.label for link in links] == [
        "Overview", "Search", "Notes", "Graph", "Review", "Tasks", "Agents", "System",
    ]  # fmt: skip
    assert "".join(link.key for link in links) == "osngrtay"
