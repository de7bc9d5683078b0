"""File kinds and ids of attachments (behaviour 290)."""

from __future__ import annotations

import pytest

from lithos.attachments.model.kinds import (
    LARGEST,
    LARGEST_PDF,
    MEDIA,
    asks_for_image,
    attachment_id,
    kind_of,
    largest,
)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a/b/Report.PDF", "pdf"),
        ("board.canvas", "canvas"),
        ("x.excalidraw", "drawing"),
        ("Drawing 1.excalidraw.md", "drawing"),
        ("a.Excalidraw.MD", "drawing"),
        ("log.txt", "text"),
        ("t.csv", "text"),
        ("t.org", "text"),
        ("t.rst", "text"),
        ("p.htm", "html"),
        ("p.HTML", "html"),
        *((f"i.{suffix}", "image") for suffix in MEDIA),
        ("note.md", None),
        ("excalidraw.md", None),
        (".pdf", None),
        ("a.pdf/b", None),
        ("pdf", None),
        ("", None),
        ("a.zip", None),
    ],
)
def test_suffix_in_any_case_determines_the_kind(path: str, kind: str | None):
    assert kind_of(path) == kind


def test_attachment_id_can_be_derived_from_any_path():
    assert attachment_id("a/b.pdf") == attachment_id("a/b.pdf") != attachment_id("b.pdf")
    for path in ("a.pdf", "Ä 語.pdf", "\udcff.pdf"):
        assert attachment_id(path).startswith("att_")
        assert len(attachment_id(path)) == len("att_") + 12


def test_only_pdf_files_may_be_very_large():
    assert largest("pdf") == LARGEST_PDF > LARGEST == largest("text") == largest("canvas")


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("kanban board", False),
        ("kanban sketch", True),
        ("a Screenshot of the board", True),
        ("board.png", True),
        ("Bild vom Brett", True),
        ("imagine a board", False),
        ("", False),
    ],
)
def test_question_asks_for_images_only_if_it_names_images(query: str, asks: bool) -> None:
    """behaviour 381"""
    assert asks_for_image(query) is asks
