"""Markdown files that begin with a thematic break (`---`) instead of frontmatter."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from attrs import evolve

from lithos.notes.format.document import parse_document, rewrite_document
from lithos.text.yaml.layout import read_layout
from lithos.text.yaml.nodes import UnreadableNote

MODIFIED = datetime(2025, 5, 5, 5, 5, 5, tzinfo=UTC)

BEGINNINGS = [
    "---\n",
    "---\n\nText under a rule that nothing closes: and a colon.\n",
    "---\nJust text\n---\nmore text\n",
    "---\n- a\n- b\n---\n",
    "---\n\n# A heading\n\nSome prose, [a link](b) and `code`.\n\n---\n\nMore.\n",
    "---\n\nThis is what was said then: nothing: at all.\n\n---\n",
    "---\n> a quotation\n---\n",
    "---\n**bold** text\n\n---\n",
    "--- \r\n\r\nWindows text\r\n\r\n---\r\nmore\r\n",
    "\ufeff---\ntext after a byte-order mark\n---\n",
    "---\n| a | b |\n|---|---|\n---\n",
    "---\n" + "- " * 50_000 + "x\n---\n",
]


@pytest.mark.parametrize("text", BEGINNINGS, ids=range(len(BEGINNINGS)))
def test_file_beginning_with_a_thematic_break_has_no_frontmatter(text: str) -> None:
    """behaviour 177; notes §3: the file has no keys, so every key has its default."""
    document = parse_document(text.encode(), "folder/a-rule.md", MODIFIED)
    expected = text.removeprefix("\ufeff")
    assert document.content == (expected.replace("\r\n", "\n") if "\r" in text else expected).strip()
    assert (document.note.title, document.note.author, document.note.extra) == ("a-rule", "unknown", {})
    assert read_layout(text.encode()).content == document.content


@pytest.mark.parametrize("text", BEGINNINGS, ids=range(len(BEGINNINGS)))
def test_update_inserts_frontmatter_before_a_thematic_break(text: str) -> None:
    """behaviour 175: all other parts stay unchanged, byte for byte."""
    data = text.encode()
    old = parse_document(data, "a.md", MODIFIED)
    new = evolve(old, note=evolve(old.note, tags=("new",), version=2))
    written = rewrite_document(data, "a.md", MODIFIED, new, replace_body=False)
    assert written.endswith(data.removeprefix("\ufeff".encode()))
    again = parse_document(written, "a.md", MODIFIED)
    assert (again.note.tags, again.note.version, again.content) == (("new",), 2, old.content)
    third = rewrite_document(written, "a.md", MODIFIED, again, replace_body=False)
    assert third == written


@pytest.mark.parametrize(
    "head", ["title: [a", "title: a: b", "\ttitle: a", "# comment\nmy own key: [", "{a: b", '"a": [b']
)
def test_malformed_frontmatter_still_counts_as_frontmatter(head: str) -> None:
    """behaviour 22"""
    with pytest.raises(UnreadableNote):
        parse_document(f"---\n{head}\n---\ntext\n".encode(), "a.md", MODIFIED)


@pytest.mark.parametrize("head", ["", "\n", "# only a comment\n", "\n\ntitle: A\n", "{}\n", "? a\n: b\n"])
def test_empty_frontmatter_and_unusual_mapping_count_as_frontmatter(head: str) -> None:
    document = parse_document(f"---\n{head}---\n# Title\n\ntext\n".encode(), "a.md", MODIFIED)
    assert (document.note.title, document.content) == ("Title", "text")
