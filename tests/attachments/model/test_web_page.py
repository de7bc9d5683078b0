"""Web pages, which yield the text that a reader sees (behaviour 290)."""

from __future__ import annotations

import pytest

from lithos.attachments.model.reading import read_parts
from lithos.attachments.model.web_page import read_page
from tests.kernel.values.bounds import cpu_bound

PAGE = b"""<!DOCTYPE html>
<html><head><title>A &amp; B</title><meta charset="utf-8">
<style>p { color: red }</style><script src="https://example.org/x.js">if (a < b) "</p>";</script>
<link rel=stylesheet href="https://example.org/">
</head><body><!-- not <b>this</b> -->
<h1>Head<em>ing</em></h1><p title="a > b">One
  paragraph&nbsp;here&#x2026;</p>
<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>
<ul><li>x<li>y</ul>line<br>break 1 < 2 & 3
<pre>
  kept  as
  it <b>stands</b> here
</pre>
<textarea>typed</textarea><template><p>no</p></template>
</body></html>"""


def told(data: bytes) -> str:
    return "\n".join(part.text for part in read_page(data))


def test_web_page_yields_visible_text_only():
    assert told(PAGE) == (
        "A & B\n\nHeading\n\nOne paragraph here…\n\na b\nc\n\nx\ny\n\nline\nbreak 1 < 2 & 3\n\n"
        "  kept  as\n  it stands here\n\ntyped"
    )


def test_web_page_part_begins_at_a_source_line():
    paragraphs = "".join(f"<p>\n{'word ' * 100}{number}</p>\n" for number in range(9))
    places = [int(part.place) for part in read_page(paragraphs.encode())]
    assert places == [2, 6, 10, 14, 18][: len(places)]
    assert len(places) > 2
    minified = "".join(f"<p>{'word ' * 300}{number}</p>" for number in range(5)).encode()
    assert [part.place for part in read_page(minified)] == ["1", "1:1512", "1:3020", "1:4528", "1:6036"]
    assert minified[1512 - 4 :].startswith(b"<p>word")


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("a<b", "a"),
        ("a <3 b", "a <3 b"),
        ("a<", "a<"),
        ("a</", "a</"),
        ("a<!-- b", "a"),
        ("a<!-->b", "a"),
        ("a<!x>b<?y>c", "abc"),
        ("<p it's>a</p>", "a"),
        ('<p x = "a>b">c', "c"),
        ('<p x="a>b', ""),
        ("<SCRIPT>a</Script >b", "b"),
        ("<script>a", ""),
        ("<script>a</scripts>b</script>c", "c"),
        ("&#99999999999999;&#55555;&#x110000;&nosuch;&lt", "\ufffd\ufffd\ufffd&nosuch;<"),
        ("&#" + "9" * 10_000 + ";", "\ufffd"),
        ("", ""),
    ],
)
def test_broken_markup_is_closed_as_in_browsers(source: str, seen: str):
    assert told(source.encode()) == seen


def test_declared_encoding_is_used_when_page_is_not_utf_8():
    page = '<meta http-equiv="Content-Type" content="text/html; charset=shift_jis"><p>日本語'
    assert told(page.encode("shift_jis")) == "日本語"
    assert told(page.encode()) == "日本語"
    assert told('<meta charset="zip"><p>größe'.encode("cp1252")) == "größe"
    assert told('<meta charset="windows-1251"><p>мир'.encode("cp1251")) == "мир"


BOMBS = {
    "unclosed tags": b"<div>" * 100_000,
    "unclosed tags with text": b"<b>x" * 100_000,
    "comments": b"<!--" * 100_000,
    "half tags": b"<a " * 100_000,
    "half ends": b"</" * 100_000,
    "quotes": b'<a ="' * 100_000,
    "single quotes": b"<a x='y' '" * 50_000,
    "blanks before quotes": b"<a = " + b" " * 100_000 + b'"' * 100_000,
    "half scripts": b"<script" * 50_000,
    "scripts": b"<script></script" * 50_000,
    "a huge attribute": b"<a title='" + b"x" * 500_000,
    "references": b"&#" * 125_000 + b"9" * 125_000,
    "names of references": b"&" * 50_000 + b"amp" * 50_000,
    "preformatted": b"<pre>\n" * 50_000,
    "declarations": b"<!" * 125_000,
    "cells": b"<td>" * 100_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_hostile_web_page_is_read_in_linear_time(name: str):
    with cpu_bound(1.25):  # this is about ten times the usual time, far below quadratic time
        for _ in read_parts("html", "a.html", BOMBS[name]):
            pass
