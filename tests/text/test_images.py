"""Images and badges in indexed text: their words are kept, but addresses and file names are removed."""

from __future__ import annotations

import pytest

from lithos.text.chunk import chunk_text
from lithos.text.markdown import strip_images, strip_passage
from lithos.text.snippet import plain_passage

BADGE = "https://img.shields.io/travis/ann/kanban.svg?branch=main"


@pytest.mark.parametrize(
    ("text", "indexed"),
    [
        (f"[![Build status]({BADGE})](https://travis-ci.org/ann/kanban) Text", "Build status Text"),
        (f"![Build]({BADGE}) Text", "Build Text"),
        ("[![CI][ci-badge]][ci] Text", "CI Text"),
        (
            f"Text\n\n[ci-badge]: {BADGE}\n[docs]: https://docs.rs/kanban\n",
            "Text\n\n\n[docs]: https://docs.rs/kanban\n",
        ),
        ("![[kanban sketch.png]] Text", " Text"),
        ("![[kanban sketch.PNG|The board|300]] Text", "The board|300 Text"),
        ("![[sketch.svg|300x200]] Text", " Text"),
        ("![[Other note]] ![[Other#part|x]]", "![[Other note]] ![[Other#part|x]]"),
        ("![A cat](cat.jpg) and [site](https://e.org/a.png)", "A cat and [site](https://e.org/a.png)"),
        ('<a href="https://ci.e.org"><img src="https://e.org/b.svg" alt="x"></a>Text', "</a>Text"),
        ("<img src='b.png'/>Text", "Text"),
        ("a ![ b", "a ![ b"),
        ("x[0]: y", "x[0]: y"),
        ("[note]: https://e.org/page", "[note]: https://e.org/page"),
    ],
)
def test_only_the_words_of_image_links_are_indexed(text: str, indexed: str) -> None:
    """behaviour 382"""
    assert strip_images(text) == indexed


def test_passage_that_begins_inside_a_badge_has_no_address() -> None:
    """behaviour 382"""
    assert strip_passage(f"status]({BADGE})](https://e.org) Text") == " Text"
    assert strip_passage("see [a](b) Text") == "see [a](b) Text"


def test_badge_addresses_are_neither_shown_nor_embedded() -> None:
    """behaviour 382"""
    badges = "\n".join(f"[![Build status {n}]({BADGE})](https://travis-ci.org/ann/{n})" for n in range(40))
    for chunk in chunk_text("Kanban", f"# Kanban\n\n{badges}\n\nThe board has three columns."):
        for shown in (chunk.embedded, chunk.indexed, plain_passage(chunk.text)):
            assert "shields" not in shown
            assert "travis" not in shown
