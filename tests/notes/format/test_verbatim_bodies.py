"""Verbatim storage of text: indentation, trailing blank lines, and both closing lines of a frontmatter."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.format.document import parse_document, render_document, rewrite_document
from lithos.notes.model.note import Document, Note
from lithos.notes.model.versions import body_of, have_same_body, head_of
from lithos.text.yaml.layout import read_layout, trim_content
from lithos.text.yaml.vault_style import PLAIN, VaultStyle

MODIFIED: Final = datetime(2025, 5, 5, 5, 5, 5, tzinfo=UTC)
VAULT: Final = VaultStyle.of_foreign()
STYLES: Final = pytest.mark.parametrize("style", [PLAIN, VAULT], ids=["plain", "vault"])
#: Lines that do not begin like a heading, because a heading would become the title.
LINES: Final = st.lists(
    st.sampled_from(["", "    code", "\ttabbed", "- item", "  - [ ] nested", "text  ", "| a | b |", " "]),
    min_size=1,
    max_size=8,
)


def _new(content: str, style: VaultStyle) -> bytes:
    note = Note(id="00000000-0000-4000-8000-000000000000", title="a", created_at=MODIFIED)
    return render_document(Document(note=note, content=content), "a.md", style)


def _below(data: bytes) -> str:
    """Return the body without frontmatter, title and leading blank lines."""
    text = read_layout(data).body.removeprefix("\n").removeprefix("# a\n")
    lines = text.split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    return "\n".join(lines)


@STYLES
@pytest.mark.parametrize(
    "content",
    [
        "    first line of code\n    second line of code\n",
        "\tcode\n",
        "  - nested first\n- item\n",
        "text\n\n\n",
        "last line with a break  \n",
        "text\n  \n",
    ],
)
def test_new_note_stores_its_text_verbatim(content: str, style: VaultStyle) -> None:
    """behaviour 363"""
    assert _below(_new(content, style)) == content


@STYLES
@given(lines=LINES, breaks=st.sampled_from(["\n", "\r\n"]))
def test_body_is_unchanged_when_read_text_is_written_back(
    style: VaultStyle, lines: list[str], breaks: str
) -> None:
    """behaviour 363: an unchanged text that was read can be written back without changing the body."""
    head = "---\nid: 00000000-0000-4000-8000-000000000000\ntitle: a\n---\n"
    data = (head + "\n# a\n\n" + "\n".join(lines)).replace("\n", breaks).encode()
    old = parse_document(data, "a.md", MODIFIED, style=style)
    again = rewrite_document(data, "a.md", MODIFIED, old, replace_body=True, style=style)
    assert read_layout(again).body == read_layout(data).body


@STYLES
@given(lines=LINES)
def test_replaced_text_is_stored_verbatim(style: VaultStyle, lines: list[str]) -> None:
    """behaviour 363"""
    data = _new("before\n", style)
    content = "\n".join(["begin", *lines, "end", ""])
    old = parse_document(data, "a.md", MODIFIED, style=style)
    new = evolve(old, content=content)
    again = rewrite_document(data, "a.md", MODIFIED, new, replace_body=True, style=style)
    assert _below(again) == content


def test_trimmed_content_loses_only_blank_lines() -> None:
    assert trim_content(" \n\r\n  a\n\n b \n ") == "  a\n\n b"
    assert trim_content(" \n\t") == ""


@pytest.mark.parametrize("end", ["...", "... ", "...\n---"])
@pytest.mark.parametrize("breaks", ["\n", "\r\n"])
@STYLES
def test_three_dots_end_a_frontmatter(end: str, breaks: str, style: VaultStyle) -> None:
    """behaviour 364: `...` ends a YAML document, as Pandoc writes it."""
    data = f"---\ntitle: With dots\n{end}\nBody.\n".replace("\n", breaks).encode()
    old = parse_document(data, "a.md", MODIFIED, style=style)
    assert (old.note.title, old.content) == ("With dots", "Body.")
    new = evolve(old, note=evolve(old.note, tags=("x",)))
    again = rewrite_document(data, "a.md", MODIFIED, new, replace_body=False, style=style).decode()
    assert again.startswith(f"---{breaks}title: With dots{breaks}")
    assert again.endswith(f"{breaks}{end}{breaks}Body.{breaks}".replace("\n", breaks).replace("\r\r", "\r"))
    assert again.count("title:") == 1


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("---\nSome prose.\n...\nMore.\n", "---\nSome prose.\n...\nMore."),
        ("---\ntitle: A\n....\n", "---\ntitle: A\n...."),
        ("---\ntitle: A\n---\n...\n", "..."),
        ("...\ntitle: A\n...\n", "...\ntitle: A\n..."),
    ],
)
def test_dots_outside_the_frontmatter_are_text(text: str, content: str) -> None:
    """behaviour 364"""
    assert parse_document(text.encode(), "a.md", MODIFIED).content == content


def test_history_accepts_dots_as_end_of_the_frontmatter() -> None:
    """behaviour 364"""
    data = b"---\ntitle: A\n...\n# T\n\n  text\n"
    assert head_of(data) == b"---\ntitle: A\n...\n"
    assert body_of(data).endswith(b"text")
    assert have_same_body(data, b"---\ntitle: B\n---\n# T\n\n  text\n")
    assert not have_same_body(data, b"# T\n\ntext\n")
