"""Note bytes in which a restore changes only the version keys."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.format.document import amend_document, parse_document
from lithos.text.yaml.nodes import UnreadableNote

NOTE = "0b6f4f3e-6d3b-4c39-8a8e-5a3f4f1f5d10"
NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
LATER = datetime(2026, 2, 2, tzinfo=UTC)
OWN = ("id:", "version:", "updated_at:", "lithos_")

KEYS = st.lists(
    st.sampled_from([
        "tags: [a, 'b']  # mine",
        f"id: {NOTE}",
        "version: 7",
        "version: 'x'",
        "# comment",
        "own: |\n  a\n  b",
        "updated_at: 2025-01-01",
        'title: "T: t"',
        "summaries: {short: é}",
        "other:\n- 1\n\n- 2",
    ]),
    max_size=5,
    unique_by=lambda line: line.partition(":")[0],
)  # fmt: skip
BODIES = st.lists(
    st.sampled_from(
        [
            "# T", "", "text  ", "\ttab", "T\n===", "```\n# no\n```", "---", "> [!note] c", "[^1]: f",
            "😀 é", "<b>",
        ]
    ),
    max_size=8,
)  # fmt: skip


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Draw a note file as people write it.

    The file has LF or CRLF line ends, and may lack frontmatter or the last newline.
    """
    keys = draw(KEYS)
    head = "---\n" + "".join(f"{key}\n" for key in keys) + "---\n" if keys else ""
    text = head + "\n".join(draw(BODIES)) + draw(st.sampled_from(["", "\n", "\n\n"]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return (mark + (text.replace("\n", "\r\n") if draw(st.booleans()) else text)).encode()


def others(data: bytes) -> list[str]:
    """Return the lines that must not change, without blank lines and frontmatter fences."""
    lines = data.decode().removeprefix("\ufeff").splitlines(keepends=True)
    return [line for line in lines if not line.startswith(OWN) and line.rstrip("\r\n") not in ("---", "")]


@given(files())
def test_amended_document_changes_only_the_named_keys(data: bytes) -> None:
    """behaviour 223"""
    values = {"id": NOTE, "version": 9, "updated_at": LATER}
    try:
        before = parse_document(data, "a.md", NOW, NOTE)
    except UnreadableNote:
        return
    made = amend_document(data, "a.md", NOW, values, NOTE)
    after = parse_document(made, "a.md", NOW)
    assert (after.note.id, after.note.version, after.note.updated_at) == (NOTE, 9, LATER)
    assert after.content == before.content
    assert (after.note.title, after.note.tags) == (before.note.title, before.note.tags)
    assert others(made) == others(data)
    assert before.note.extra == after.note.extra, "what a person says under such a key stays"
    assert made.startswith(b"\xef\xbb\xbf") == data.startswith(b"\xef\xbb\xbf")
    assert amend_document(made, "a.md", NOW, values, NOTE) == made
