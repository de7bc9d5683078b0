"""The rules for notes in a person's vault."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.format.document import parse_document, parse_identified, render_document, rewrite_document
from lithos.notes.links import links
from lithos.notes.links.links import FileNames, scan_links, scan_targets
from lithos.notes.model.note import Document, Note
from lithos.text.words.list_filters import has_tags
from lithos.text.yaml.nodes import UnreadableNote
from lithos.text.yaml.vault_style import PLAIN, VaultStyle

NOW = datetime(2026, 1, 2, tzinfo=UTC)
VAULT = VaultStyle.of_foreign()


def read(text: str, path: str = "a/File name.md", style: VaultStyle = VAULT) -> Document:
    return parse_document(text.encode(), path, NOW, None, style)


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ("[a](b.md)", "sub/b.md"),
        ("[a](./b.md)", "sub/b.md"),
        ("[a](../b.md#part)", "b.md"),
        ("[a](../../b.md)", "b.md"),
        ("[a](x%20y/%C3%A9.md)", "sub/x y/é.md"),
        ("[a](<x y.md>)", "sub/x y.md"),
        ("[a](< x.md >)", "sub/x.md"),
        ("[a](/top.md)", "top.md"),
        ('[a](b.md "Title")', "sub/b.md"),
        ("[a](b(1).md)", "sub/b(1).md"),
        ("[**a** [b]](c.md)", "sub/c.md"),
        ("![a](b.md)", "sub/b.md"),
        ("[[a\\|b]]", "a"),
        ("![[a#part|b]]", "a#part"),
    ],
)
def test_link_is_resolved_relative_to_its_file(written: str, target: str) -> None:
    assert [link.target for link in scan_links(f"x {written} y", "sub/note.md")] == [target]
    assert scan_targets(f"x {written} y", "sub/note.md") == (target,)


@pytest.mark.parametrize(
    "text",
    [
        "[a](b.png)", "[a](http://x/b.md)", "[a](//x/b.md)", "[a](mailto:x.md)", "[a](#b.md)", "[a](b .md)",
        "`[a](b.md)`", "```\n[a](b.md)\n```", "[a] (b.md)", "[a](b.md", "(b.md)", "arr[[0]]",
    ],
)  # fmt: skip
def test_text_resembling_a_link_is_not_a_note_link(text: str) -> None:
    assert scan_links(text, "sub/note.md") == []


def test_link_to_own_heading_never_resolves_to_another_note() -> None:
    assert scan_targets("[[#Heading]] [[^block]] [[a]]") == ("a",)


def test_thousands_of_links_keep_their_order() -> None:
    text = "".join(f"[[w{n}]] [m](m{n}.md)\n" for n in range(3_000))
    targets = [link.target for link in scan_links(text)]
    assert targets == [name for n in range(3_000) for name in (f"w{n}", f"m{n}.md")]
    assert sorted(scan_targets(text)) == sorted(targets)


def test_file_names_are_known_regardless_of_folder_and_case() -> None:
    names = FileNames(["img/Bild.PNG", "other/bild.png", "doc.pdf"])
    assert len(names) == 3
    assert "bild.png" in names
    assert "else/BILD.png#x" in names
    assert "doc" not in names
    assert names.discard("img/Bild.PNG")
    assert "bild.png" in names
    assert names.discard("other/bild.png")
    assert "bild.png" not in names
    assert not names.discard("other/bild.png")
    assert not names.add("doc.pdf")


def test_number_of_remembered_files_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit, no link with a file suffix is reported as broken."""
    monkeypatch.setattr(links, "MOST_FILES", 2)
    names = FileNames(["a.png", "b.png", "c.png"])
    assert len(names) == 2
    assert "c.png" in names
    assert "A note" not in names


@pytest.mark.parametrize(
    ("tags", "wanted", "passes"),
    [
        (("project",), ["project/"], True),
        (("project/a/b",), ["project/"], True),
        (("project/a/b",), ["project/a/"], True),
        (("projects",), ["project/"], False),
        (("project/a",), ["project"], True),
        (("project/a",), ["#project"], True),
        (("project/a",), ["#project/a/"], True),
        (("#project/a",), ["#project"], True),
        (("#project",), ["project"], True),
        (("project",), ["project/a"], False),
        (("project",), ["proj"], False),
        (("#",), ["#"], True),
        (("Project",), ["project/"], True),
        (("a", "b/c"), ["a", "b"], True),
        (("a",), ["a", "b/"], False),
        (("a",), ["/"], False),
        ((), [], True),
        ((), None, True),
    ],
)
def test_tag_filter_includes_nested_tags(
    tags: tuple[str, ...], wanted: list[str] | None, passes: bool
) -> None:
    """behaviours 54, 251"""
    assert has_tags(tags, wanted) is passes


def test_heading_is_the_title_only_if_the_vault_style_allows() -> None:
    text = "---\nfoo: 1\n---\n# *Heading*\n\ntext #tag\n"
    assert (read(text).note.title, read(text).content) == ("File name", "# *Heading*\n\ntext #tag")
    assert read(text).note.all_tags == ("tag",)
    plain = read(text, style=PLAIN)
    assert (plain.note.title, plain.content, plain.note.all_tags) == ("Heading", "text #tag", ())


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("a: [1\nb: 2", 3),
        ("a: b: c", 2),
        ("x: 1\n\ty: 2", 3),
        ('title: "open', 2),
        ("ok: 1\nbad: \x01", 3),
        ("a: " + "[" * 200, 2),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["no mark", "mark"])
def test_broken_frontmatter_error_names_its_line(head: str, line: int, newline: str, mark: str) -> None:
    text = mark + f"---\n{head}\n---\n# Heading\n\ntext #tag\n".replace("\n", newline)
    document = read(text)
    assert document.content == "# Heading\n\ntext #tag"
    assert document.note.title == "File name"
    assert document.note.frontmatter_error is not None
    assert document.note.frontmatter_error["line"] >= line
    assert document.note.inline_tags == ("tag",)
    assert not parse_identified(text.encode(), "a.md", NOW, "given", VAULT)[1]
    assert parse_document(text.encode(), "a.md", NOW, "given", VAULT).note.id == "given"
    with pytest.raises(UnreadableNote):
        read(text, style=PLAIN)
    with pytest.raises(UnreadableNote):
        rewrite_document(text.encode(), "a.md", NOW, document, replace_body=False, style=VAULT)


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(
    ("head", "names"),
    [
        ("title: Notes: on breaking\naliases: [BO, Bee One]", ("Notes: on breaking", "BO", "Bee One")),
        ("aliases:\n  - Bee Two\n  - Three\ntags: [a, b", ("Bee Two", "Three")),
        ("alias:\n- Bee Two\n- Three\ntags: [a, b", ("Bee Two", "Three")),
        ('title: "open\nalias: Other', ("open", "Other")),
        ("title: *it*\naliases: [x, y", ("it",)),
        ("title: [a\nx: 1", ("[a",)),
        (" title: inner\nx: [", ()),
        ("subtitle: no\nx: [", ()),
        ("x: [\naliases: \x01", ()),
    ],
)
def test_aliases_in_a_broken_frontmatter_are_read(head: str, names: tuple[str, ...], newline: str) -> None:
    """behaviour 252"""
    document = read(f"---\n{head}\n---\ntext\n".replace("\n", newline))
    assert document.note.frontmatter_error is not None
    assert document.note.aliases == names


def test_binary_files_stay_unreadable() -> None:
    for data in (b"\x00", b"\xff\xfe"):
        with pytest.raises(UnreadableNote):
            parse_document(data, "a.md", NOW, None, VAULT)


words = st.text(alphabet="ab1 #-é/", max_size=12).map(str.strip)
contents = st.lists(st.sampled_from(["# Head", "text #one", "`#no`", "#two/x", "", "plain"]), max_size=5).map(
    "\n".join
)
tag_lists = st.lists(st.sampled_from(["one", "front", "two/x"]), max_size=3, unique=True).map(tuple)


@given(contents, tag_lists, contents, tag_lists, st.booleans())
def test_inline_tags_are_never_written_to_the_frontmatter(
    content: str, tags: tuple[str, ...], later: str, changed: tuple[str, ...], replaces: bool
) -> None:
    """The written file can be read back. Its frontmatter contains only the tags that were set."""
    note = Note(id="0b6f4f3e-6d3b-4c39-8a8e-5a3f4f1f5d10", title="A title", tags=tags, created_at=NOW)
    data = render_document(Document(note=note, content=content), style=VAULT)
    document = parse_document(data, "a.md", NOW, None, VAULT)
    assert (document.note.tags, document.content) == (tags, content.strip())
    new = Document(note=evolve(document.note, tags=changed, title="New title"), content=later)
    written = rewrite_document(data, "a.md", NOW, new, replace_body=replaces, style=VAULT)
    again = parse_document(written, "a.md", NOW, None, VAULT)
    assert (again.note.tags, again.note.title) == (changed, "New title")
    assert again.content == (later.strip() if replaces else content.strip())
    assert parse_document(written, "a.md", NOW).note.tags == changed
