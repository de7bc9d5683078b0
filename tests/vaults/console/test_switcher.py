"""Quick switcher, which finds notes by the beginning of a name (docs/spec/console.md §2)."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from lithos.notes.console.notes import MOST_OFFERED as MOST
from tests.server.console.injections import HOSTILE
from tests.server.console.pages import dangers, parse
from tests.server.console.visiting import Visitor, visiting


async def found(person: Visitor, typed: str) -> list[str]:
    """Return the paths of the suggested notes, best match first."""
    page = parse(await person.page(f"/console/find?partial=1&q={quote(typed)}"))
    assert dangers(page) == []
    return [one.all("span")[0].text for one in page.all("li")]


async def test_switcher_lists_title_matches_before_aliases_and_paths(tmp_path: Path) -> None:
    notes = {
        "a.md": ("Git", ()),
        "b.md": ("Obsidian Git", ()),
        "c.md": ("Git backups of a vault", ()),
        "git/d.md": ("Somewhere else", ()),
        "e.md": ("Versions", ("git",)),
        "f.md": ("Logit and digit", ()),
        "g.md": ("Übung macht", ("Gitter 2",)),
    }
    for path, (title, aliases) in notes.items():
        file = tmp_path / "knowledge" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\ntitle: {title}\naliases: [{', '.join(aliases)}]\n---\nText.\n")
    async with visiting(tmp_path, settled=True) as person:
        names = ["a.md", "e.md", "c.md", "g.md", "git/d.md", "b.md"]
        assert await found(person, "git") == [*names, "f.md"]  # f.md contains the text inside a word
        assert await found(person, "  GIT  back") == ["c.md"]
        assert await found(person, "üb") == ["g.md"]
        assert await found(person, "git/") == ["git/d.md"]
        for typed in ("", "   ", "xylophone", ".*", "("):
            assert await found(person, typed) == [], typed


async def test_switcher_limits_its_suggestions_and_escapes_hostile_names(tmp_path: Path) -> None:
    """behaviour 236: the quick switcher shows hostile names as plain text."""
    async with visiting(tmp_path, settled=True) as person:
        for number, text in enumerate(HOSTILE):
            await person.lithos.create(f"zebra {number} {text}")
        for number in range(MOST):
            await person.lithos.create(f"Zebra of the plain {number}")
        assert len(await found(person, "zebra")) == MOST
        for text in HOSTILE:
            await found(person, text)
        answer = await person.client.get("/console/find", params={"q": "zebra & co"})
        assert (answer.status_code, answer.headers["location"]) == (302, "/console/search?q=zebra+%26+co")
