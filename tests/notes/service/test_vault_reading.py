"""Reading of an existing vault as its owner intended it (docs/spec/vault.md §2)."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.findings import DOCTOR, checks_of
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.files import NoteFiles
from lithos.notes.format import document
from lithos.notes.opening import style_of
from lithos.notes.settings import IndexConfig
from lithos.server.service_state import ServerState
from lithos.upkeep.checks import checks_care  # noqa: F401 - it registers checks
from lithos.upkeep.checks.checks import Installed, run_check
from lithos.upkeep.checks.validation import survey_notes, validate_notes
from tests.servers import VAULT, Clock, Lithos, put_note, refusal, serving

BROKEN = "---\ntitle: Fine\ntags: [a, b\nother: 1\n---\n# The heading\n\nZebras are striped. #animal\n"


async def titles(lithos: Lithos) -> dict[str, str]:
    """Return the titles of all notes by path."""
    items = (await lithos.call("lithos_list"))["items"]
    return {item["path"]: item["title"] for item in items}


def links_of(data: Path) -> dict[str, list[str]]:
    """Return the links in the report of `lithos validate`, by group."""
    validation = validate_notes(NoteFiles(data / "knowledge"), style=style_of(StorageConfig(**VAULT)))
    return {
        group: [
            issue.detail for each in validation.groups if each.check.name == group for issue in each.issues
        ]
        for group in ("BROKEN_LINK", "AMBIGUOUS")
    }


async def test_titles_come_from_the_title_key_or_file_name(tmp_path: Path) -> None:
    """behaviour 251"""
    put_note(tmp_path, "a/Weekly plan.md", "# Something else\n\ntext")
    put_note(tmp_path, "b.md", '---\ntitle: "[[dataview|Dataview]] and **more**"\n---\n# Heading\n')
    put_note(tmp_path, "bom.md", b"\xef\xbb\xbf---\r\ntitle: With a mark\r\n---\r\n# H\r\n\r\nx\r\n")
    async with serving(tmp_path, storage=VAULT) as lithos:
        assert await titles(lithos) == {
            "a/Weekly plan.md": "Weekly plan",
            "b.md": "Dataview and more",
            "bom.md": "With a mark",
        }
        read = await lithos.call("lithos_read", path="a/Weekly plan.md")
        assert read["content"] == "# Something else\n\ntext"
        assert (await lithos.call("lithos_read", path="bom.md"))["content"] == "# H\n\nx"
        assert await lithos.found("Something else", mode="fulltext") == ["Weekly plan"]


async def test_heading_yields_the_title_without_markup(tmp_path: Path) -> None:
    """behaviour 251"""
    put_note(tmp_path, "x.md", "---\ntitle: Key\n---\n# [[dataview|Dataview]] is `code`\n\ntext")
    async with serving(tmp_path) as lithos:
        read = await lithos.call("lithos_read", path="x.md")
        assert (read["title"], read["content"]) == ("Dataview is code", "text")
        await lithos.write("Dataview is code", "new text", id=read["id"])
        assert "# [[dataview|Dataview]] is `code`\n\nnew text" in (lithos.knowledge / "x.md").read_text()


async def test_updates_properties_and_names_follow_the_vault_rules(tmp_path: Path) -> None:
    """behaviours 251 and 252: a note with broken frontmatter also has a file name, a title and aliases."""
    put_note(tmp_path, "x.md", "---\nfoo: 1\n---\n\n# Mine\n\ntext\n")
    head = (
        "---\nrating: 4\ndone: true\ndue: 2026-01-31\nat: 2026-01-31T10:20:00\npeople:\n  - Ann\n  - Bob\n"
        'parent: "[[Home]]"\nalias: Nick\naliases: [Name]\ntag: one, two\ntitle: Own\n---\ntext\n'
    )
    put_note(tmp_path, "p.md", head)
    put_note(tmp_path, "Broken one.md", "---\ntitle: On: breaking\naliases: [BO]\n---\n# The heading\n")
    put_note(tmp_path, "good.md", "[[Broken one]] [[broken one]] [[On: breaking]] [[BO]]")
    file = put_note(tmp_path, "b.md", BROKEN)
    async with serving(tmp_path, storage=VAULT) as lithos:
        read = await lithos.call("lithos_read", path="x.md")
        await lithos.call("lithos_note_update", id=read["id"], agent="a", title="Other")
        assert (lithos.knowledge / "x.md").read_text().endswith("---\n\n# Mine\n\ntext\n")
        assert (await lithos.read(read["id"]))["title"] == "Other"
        await lithos.write("Third", "No heading", id=read["id"])
        assert (lithos.knowledge / "x.md").read_text().endswith("---\n\nNo heading\n")
        made = await lithos.create("Made here", "# Its heading\n\ntext")
        assert (await lithos.read(made))["content"] == "# Its heading\n\ntext"
        # Other properties are returned as extra metadata.
        read = (await lithos.call("lithos_read", path="p.md"))["metadata"]
        assert read["aliases"] == ["Name", "Nick"]
        assert read["tags"] == ["one", "two"]
        extra = {
            "rating": 4, "done": True, "due": "2026-01-31", "at": "2026-01-31T10:20:00",
            "people": ["Ann", "Bob"], "parent": "[[Home]]", "alias": "Nick", "tag": "one, two",
        }  # fmt: skip
        assert read["extra"] == extra
        assert {key: read[key] for key in extra} == extra
        assert read["title"] == "Own"
        for match in ({"done": True}, {"people": "Bob"}, {"rating": 4}):
            assert await lithos.listed(metadata_match=match) == ["Own"]
        # The names of a note with broken frontmatter can be linked, except the name in the property.
        assert (await lithos.call("lithos_stats"))["unresolved_links"] == 1
        assert (await lithos.call("lithos_read", title="broken one"))["path"] == "Broken one.md"
        assert await lithos.listed(title_contains="BROKEN") == ["Broken one"]
        # A note with broken frontmatter can be deleted.
        note = (await lithos.call("lithos_read", path="b.md"))["id"]
        assert await lithos.call("lithos_delete", id=note, agent="a") == {"success": True}
        assert not file.exists()


async def test_links_embeds_and_attachments_are_resolved(tmp_path: Path) -> None:
    """behaviour 251"""
    put_note(tmp_path, "hub.md", "\n".join((
        "[rel](sub/Deep%20note.md#part) [angle](<sub/With (paren).md>) ![[Embedded]] [[Titled file]]",
        "![[picture.PNG|100]] [[papers/report.pdf#page=3]] [[alias one]] [[ALIAS TWO]] [[deep NOTE]]",
        "`[[no link]]` [web](https://example.org/README.md) [gone](missing.md) [[nowhere]] [[#own heading]]",
        "```", "[[not in code]] [x](nor.md)", "```",
    )))  # fmt: skip
    put_note(tmp_path, "sub/Deep note.md", "[up](../hub.md) [beside](With%20(paren).md)")
    put_note(tmp_path, "sub/With (paren).md", "---\nalias: Alias Two\n---\n")
    put_note(tmp_path, "Embedded.md", "---\naliases: [alias one]\n---\n")
    put_note(tmp_path, "Titled file.md", "---\ntitle: Another name\n---\n")
    put_note(tmp_path, "img/picture.png", b"\x89PNG")
    put_note(tmp_path, "papers/report.pdf", b"%PDF")
    async with serving(tmp_path, storage=VAULT) as lithos:
        ids = {item["path"]: item["id"] for item in (await lithos.call("lithos_list"))["items"]}
        related = await lithos.call("lithos_related", id=ids["hub.md"], include=["links"])
        assert {each["id"] for each in related["links"]["outgoing"]} == {
            ids[path] for path in ("sub/Deep note.md", "sub/With (paren).md", "Embedded.md", "Titled file.md")
        }
        assert [each["id"] for each in related["links"]["incoming"]] == [ids["sub/Deep note.md"]]
        assert (await lithos.call("lithos_stats"))["unresolved_links"] == 2
        links = (await lithos.read(ids["hub.md"]))["links"]
        assert links[:3] == [
            {"target": "sub/Deep note.md", "display": "rel"},
            {"target": "sub/With (paren).md", "display": "angle"},
            {"target": "Embedded", "display": "Embedded"},
        ]
        assert {"target": "missing.md", "display": "gone"} in links
    assert links_of(tmp_path) == {
        "BROKEN_LINK": ["[[nowhere]] leads to no note", "[[missing.md]] leads to no note"],
        "AMBIGUOUS": [],
    }


async def test_added_and_removed_attachments_are_tracked(tmp_path: Path) -> None:
    put_note(tmp_path, "a.md", "![[chart.svg]]")
    index = IndexConfig(watch_debounce_ms=50)
    async with serving(tmp_path, storage=VAULT, server={"watch_files": True}, index=index) as lithos:
        graph = lithos.server.get(Catalogue).graph
        assert graph.counts().unresolved == 1
        chart = put_note(tmp_path, "files/chart.svg", "<svg/>")
        with trio.fail_after(60):
            while graph.counts().unresolved:
                await trio.sleep(0.02)
            chart.unlink()
            while not graph.counts().unresolved:
                await trio.sleep(0.02)


async def test_inline_tags_count_everywhere_but_are_never_written(tmp_path: Path) -> None:
    """behaviour 251"""
    text = (
        "---\ntags: [front]\n---\n# No #heading\n\n#inline and #project/alpha, `#code` [#no](x.md#no) #2024\n"
    )
    file = put_note(tmp_path, "t.md", text)
    put_note(tmp_path, "u.md", "---\ntag: solo\n---\n#project")
    put_note(tmp_path, "v.md", "#projector")
    async with serving(tmp_path, storage=VAULT) as lithos:
        read = await lithos.call("lithos_read", path="t.md")
        assert read["metadata"]["tags"] == ["front", "inline", "project/alpha"]
        assert (await lithos.call("lithos_tags"))["tags"] == {
            "front": 1, "inline": 1, "project": 1, "project/alpha": 1, "projector": 1, "solo": 1,
        }  # fmt: skip
        for wanted, found in (
            (["inline"], ["t"]),
            (["project/"], ["t", "u"]),
            (["project"], ["t", "u"]),
            (["#project"], ["t", "u"]),
            (["#project/alpha"], ["t"]),
            (["project/", "front"], ["t"]),
            (["projec"], []),
        ):
            assert await lithos.listed(tags=wanted) == found
            for mode in ("fulltext", "semantic", "hybrid"):
                assert set(await lithos.found("project", mode=mode, tags=wanted, threshold=0)) <= set(found)
            hits = await lithos.found("project OR projector OR inline", mode="fulltext", tags=wanted)
            assert sorted(hits) == found
        await lithos.call("lithos_note_update", id=read["id"], agent="a", status="archived")
        await lithos.call("lithos_note_update", id=read["id"], agent="a", tags=["front", "new", "inline"])
        written = file.read_text()
        assert "tags: [front, new]" in written
        assert written.endswith(text.rpartition("---\n")[2])
        assert (await lithos.read(read["id"]))["metadata"]["tags"] == [
            "front",
            "new",
            "inline",
            "project/alpha",
        ]
        await lithos.write("t", "Now #other", id=read["id"])
        assert "inline" not in file.read_text()
        assert (await lithos.read(read["id"]))["metadata"]["tags"] == ["front", "new", "other"]
        await lithos.write("t", "Now #other", id=read["id"], tags=[])
        assert (await lithos.read(read["id"]))["metadata"]["tags"] == ["other"]
        made = await lithos.create("Made", "Text #made", tags=["given"])
        assert "tags:\n  - given\n" in (lithos.knowledge / "Made.md").read_text()
        assert (await lithos.read(made))["metadata"]["tags"] == ["given", "made"]
    async with serving(tmp_path, storage=VAULT) as lithos:
        assert await lithos.listed(tags=["other"]) == ["t"]


async def test_broken_frontmatter_does_not_hide_its_note(tmp_path: Path) -> None:
    """behaviour 252"""
    file = put_note(tmp_path, "Broken one.md", BROKEN)
    put_note(tmp_path, "good.md", "[[Broken one]]")
    async with serving(tmp_path, storage=VAULT) as lithos:
        assert await lithos.found("zebras", mode="fulltext") == ["Broken one"]
        assert await lithos.found("striped animals") != []
        assert await lithos.listed(tags=["animal"]) == ["Broken one"]
        read = await lithos.call("lithos_read", path="Broken one.md")
        error = read["metadata"]["frontmatter_error"]
        assert error["line"] == 4
        assert "line 4" in error["reason"]
        assert read["content"].startswith("# The heading")
        assert (await lithos.call("lithos_stats"))["unresolved_links"] == 0
        for tool, more in (
            ("lithos_write", {"title": "T", "content": "new"}),
            ("lithos_note_update", {"tags": ["x"]}),
        ):
            answer = await lithos.call(tool, id=read["id"], agent="a", **more)
            assert "line 4" in refusal(answer, "invalid_input")
        assert file.read_text() == BROKEN
        _, health = await lithos.server.get(ServerState).report()
        told = health["components"]["knowledge_base"]
        assert told.pop("list") == "lithos validate, or /console/notes?status=broken"
        assert told == {"status": "ok", "documents": 2, "unreadable": 1}
        assert health["components"]["index"]["status"] == "ok"
        good = await lithos.call("lithos_read", path="good.md")
        assert "frontmatter_error" not in good["metadata"]
    style = style_of(StorageConfig(**VAULT))
    groups = validate_notes(NoteFiles(tmp_path / "knowledge"), style=style).groups
    [issue] = next(each.issues for each in groups if each.check.name == "PARSE_ERROR")
    assert issue.path == "Broken one.md"
    assert "line 4" in issue.detail
    survey = survey_notes(tmp_path, NoteFiles(tmp_path / "knowledge"), Clock()(), style)
    config = Config(storage=StorageConfig(data_dir=tmp_path, vault=tmp_path / "knowledge"))
    [broken] = [each for each in checks_of(DOCTOR) if each.name == "broken"]
    found = await run_check(broken, Installed(config=config, clock=Clock(), survey=survey), 60.0)
    assert "Broken one.md: line 4" in found.message


async def test_broken_frontmatter_is_read_again_after_an_upgrade(tmp_path: Path) -> None:
    """The bytes, id and version stay the same. Only the parsed values change."""
    put_note(tmp_path, "n.md", "---\nfoo: 1\n---\ntext")
    async with serving(tmp_path, storage=VAULT) as lithos:
        note = (await lithos.call("lithos_read", path="n.md"))["id"]
    put_note(tmp_path, "n.md", BROKEN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "_names_in", lambda broken: ("an older name",))
        async with serving(tmp_path, storage=VAULT) as lithos:
            before = await lithos.read(note)
            assert (before["metadata"]["aliases"], before["version"]) == (["an older name"], 2)
    async with serving(tmp_path, storage=VAULT) as lithos:
        read = await lithos.read(note)
        assert (read["metadata"]["aliases"], read["version"]) == (["Fine"], 2)
        assert lithos.events() == []


@pytest.mark.parametrize("named", [False, True], ids=["without an id", "with an id"])
async def test_note_keeps_its_id_while_its_frontmatter_is_broken(tmp_path: Path, named: bool) -> None:
    """behaviour 270"""
    own = "id: 0b6f4f3e-6d3b-4c39-8a8e-5a3f4f1f5d10\n" if named else ""
    file = put_note(tmp_path, "n.md", f"---\n{own}foo: 1\n---\ntext")
    async with serving(tmp_path, storage=VAULT) as lithos:
        note = (await lithos.call("lithos_read", path="n.md"))["id"]
    file.write_text(f"---\n{own}foo: [1\n---\ntext")
    async with serving(tmp_path, storage=VAULT) as lithos:
        assert (await lithos.call("lithos_read", path="n.md"))["id"] == note
        assert lithos.server.get(Catalogue).broken == {note}
    file.rename(tmp_path / "knowledge" / "moved.md")
    async with serving(tmp_path, storage=VAULT) as lithos:
        assert (await lithos.call("lithos_read", path="moved.md"))["id"] == note
    (tmp_path / "knowledge" / "moved.md").write_text(f"---\n{own}foo: 2\n---\ntext")
    async with serving(tmp_path, storage=VAULT) as lithos:
        read = await lithos.call("lithos_read", path="moved.md")
        assert (read["id"], read["metadata"]["foo"], read["version"]) == (note, 2, 3)
        assert lithos.server.get(Catalogue).broken == set()


async def test_changed_vault_rules_cause_all_notes_to_be_reread(tmp_path: Path) -> None:
    put_note(tmp_path, "File name.md", "# Heading\n\nthe text #tagged")
    async with serving(tmp_path) as lithos:
        note = (await lithos.call("lithos_read", path="File name.md"))["id"]
        assert await titles(lithos) == {"File name.md": "Heading"}
    async with serving(tmp_path, storage=VAULT) as lithos:
        assert await titles(lithos) == {"File name.md": "File name"}
        assert await lithos.found("heading", mode="fulltext", tags=["tagged"]) == ["File name"]
        assert (await lithos.call("lithos_read", path="File name.md"))["id"] == note
    async with serving(tmp_path) as lithos:
        assert await titles(lithos) == {"File name.md": "Heading"}
        assert await lithos.found("text", mode="fulltext", tags=["tagged"]) == []


async def test_frontmatter_broken_while_serving_is_reported_until_repaired(tmp_path: Path) -> None:
    """behaviours 252, 270"""
    note = "0b6f4f3e-6d3b-4c39-8a8e-5a3f4f1f5d10"
    file = put_note(tmp_path, "n.md", f"---\nid: {note}\ntitle: Whole\n---\ntext")
    index = IndexConfig(watch_debounce_ms=50)
    async with serving(tmp_path, storage=VAULT, server={"watch_files": True}, index=index) as lithos:
        broken = lithos.server.get(Catalogue).broken
        with trio.fail_after(60):
            file.write_text(f"---\nid: {note}\ntitle: Who: le\n---\nother words")
            # Lithos refuses the update even before it notices the change.
            answer = await lithos.call("lithos_note_update", id=note, agent="a", tags=["x"])
            assert "line 3" in refusal(answer, "invalid_input")
            while not broken:
                await trio.sleep(0.02)
            assert broken == {note}
            assert (await lithos.read(note))["content"] == "other words"
            file.write_text(f"---\nid: {note}\ntitle: Whole again\n---\nother words")
            while broken or len(lithos.events()) < 2:  # A change can be read before it is journalled.
                await trio.sleep(0.02)
        read = await lithos.read(note)
        assert (read["title"], read["version"]) == ("Whole again", 3)
        kinds = [kind for kind, _ in lithos.events()]
        assert kinds == ["note.updated", "note.updated"]


async def test_note_with_broken_frontmatter_keeps_its_id_despite_a_copy(tmp_path: Path) -> None:
    note = "0b6f4f3e-6d3b-4c39-8a8e-5a3f4f1f5d10"
    file = put_note(tmp_path, "b.md", f"---\nid: {note}\n---\ntext")
    async with serving(tmp_path, storage=VAULT):
        pass
    file.write_text(f"---\nid: {note}\nbad: [\n---\ntext")
    copy = put_note(tmp_path, "a.md", f"---\nid: {note}\n---\ncopy")
    async with serving(tmp_path, storage=VAULT) as lithos:
        read = await lithos.read(note)
        assert (read["path"], read["content"]) == ("b.md", "text")
        assert "a.md" in refusal(await lithos.call("lithos_read", path="a.md"), "doc_not_found")
    file.write_text("text")  # Lithos can now read that the file has no id.
    async with serving(tmp_path, storage=VAULT) as lithos:
        assert (await lithos.read(note))["path"] == copy.name
        assert (await lithos.call("lithos_read", path="b.md"))["content"] == "text"


async def test_huge_note_is_read_completely(tmp_path: Path) -> None:
    """The note has 400,000 characters and 18,000 links. The answer shows 200 links and counts all of them."""
    line = ("[[hub]] [x](hub.md) #tag `code` ").ljust(50) * 2_000
    links = "".join(f"[[hub|{n}]]\n" for n in range(6_000))
    put_note(tmp_path, "hub.md", "text")
    put_note(tmp_path, "huge.md", f"{line}\n\n{line}\n\n{line}\n\n{links}#last")
    async with serving(tmp_path, storage=VAULT) as lithos:
        read = await lithos.call("lithos_read", path="huge.md")
        assert (len(read["links"]), read["links_total"]) == (200, 3 * 4_000 + 6_000)
        assert read["metadata"]["tags"] == ["tag", "last"]
        assert (await lithos.call("lithos_stats"))["unresolved_links"] == 0
