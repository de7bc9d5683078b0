"""Three-way merges of whole note files as bytes, for git (docs/spec/copies.md §3).

The body is merged by lines and the frontmatter by key. Every byte that neither side changed stays, including
comments. Overlaps are written to the file between git conflict markers (`marking`). A frontmatter that cannot
be split into keys is merged by lines. A file that is not UTF-8 is also merged by lines. Binary files are not
merged.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from lithos.history.model.conflict_markers import Marked, Markers, mark_texts
from lithos.history.model.head_merge import merge_heads
from lithos.notes.format.merging import merge_break
from lithos.text.yaml.layout import Layout, read_layout
from lithos.text.yaml.nodes import UnreadableNote

#: Encoding that maps each byte to one character.
_BYTES: Final = "latin-1"
_USUAL: Final = Markers()


@frozen
class FileMerge:
    """The merged bytes (None for a binary file) and the number of marked conflicts."""

    data: bytes | None
    conflicts: int = 0


def merge_files(base: bytes, ours: bytes, theirs: bytes, markers: Markers = _USUAL) -> FileMerge:
    """Merge two changes of a file. If `base` is empty, both sides added the file."""
    if ours in (theirs, base):
        return FileMerge(theirs)
    if theirs == base:
        return FileMerge(ours)
    sides = (base, ours, theirs)
    if any(b"\0" in side for side in sides):
        return FileMerge(None, 1)
    try:
        marked = _merge_layouts(read_layout(base), read_layout(ours), read_layout(theirs), markers)
        encoding = "utf-8"
    except UnreadableNote:
        marked = mark_texts(base.decode(_BYTES), ours.decode(_BYTES), theirs.decode(_BYTES), markers)
        encoding = _BYTES
    return FileMerge(marked.text.encode(encoding), marked.conflicts)


def _merge_layouts(base: Layout, ours: Layout, theirs: Layout, markers: Markers) -> Marked:
    if not (ours.has_frontmatter or theirs.has_frontmatter):
        return mark_texts(base.text, ours.text, theirs.text, markers)
    frame = ours if ours.has_frontmatter else theirs
    newline = merge_break(base.newline if base.text else ours.newline, ours.newline, theirs.newline)
    was, mine, other = (side.yaml.replace("\r\n", "\n") for side in (base, ours, theirs))
    head = merge_heads(was, mine, other, markers)
    body = mark_texts(base.body, ours.body, theirs.body, markers)
    text = head.text.replace("\n", newline)
    if not text and not (ours.has_frontmatter and theirs.has_frontmatter):
        mark = "\ufeff" if frame.text.startswith("\ufeff") else ""
        return Marked(mark + body.text, body.conflicts)  # One side removed the frontmatter.
    opening, closing = frame.text[: frame.yaml_start], frame.text[frame.yaml_end : frame.body_start]
    if body.text and not closing.endswith("\n"):
        closing += newline
    return Marked(f"{opening}{text}{closing}{body.text}", head.conflicts + body.conflicts)
