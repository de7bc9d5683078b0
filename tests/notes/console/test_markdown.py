"""Rendering of notes as HTML: shown text, neutralised markup and time limits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lithos.notes.console.markdown import parse_markdown, render_markdown
from lithos.notes.console.note_text import draft, finish, scan_headings
from tests.growth.measuring import find_growth, steady
from tests.growth.patterns import single_patterns
from tests.server.console.injections import LONG_LINE, PAYLOADS
from tests.server.console.pages import dangers, parse

KNOWN = {"Known note": "id-1", "folder/other": "id-2", "/folder/other": "id-2", "/far": "id-3"}
LINKS = (KNOWN.get, "folder/this.md")

#: Inputs that slow down Markdown and HTML parsers. The tests also use the generic slow patterns.
HOSTILE: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "[[" * (n // 2),
    "callouts": lambda n: "[!" * (n // 2),
    "closed brackets": lambda n: "[]" * (n // 2),
    "links": lambda n: "[a](" * (n // 4),
    "images": lambda n: "![" * (n // 2),
    "footnotes": lambda n: "^[" * (n // 2),
    "emphasis": lambda n: "*a_" * (n // 3),
    "strong": lambda n: "**a " * (n // 4),
    "quotes": lambda n: ">" * n,
    "quoted lines": lambda n: "> a\n" * (n // 4),
    "lists in lists": lambda n: "- " * (n // 2),
    "task items": lambda n: "- [ ] a\n" * (n // 8),
    "table rows": lambda n: "|a|b|\n|-|-|\n" + "|c|d|\n" * (n // 6),
    "missing cells": lambda n: "|" + "a|" * (n // 8) + "\n|" + "-|" * (n // 8) + "\nx" * (n // 4),
    "definitions": lambda n: "".join(f"[a{i}]: b\n" for i in range(n // 14)) + "[a1] " * (n // 10),
    "open elements": lambda n: "<b>" * (n // 6) + "<p>" * (n // 6),
    "elements with ids": lambda n: "".join(f"<b id={i}>" for i in range(n // 24)) + "<p>x" * (n // 8),
    "divisions": lambda n: "<div>" * (n // 5),
    "tables in tables": lambda n: "<table><tr><td>" * (n // 15),
    "cells without a table": lambda n: "<table>" + "<td>x<b>" * (n // 8),
    "entities": lambda n: "&#1;" * (n // 4),
    "comments": lambda n: "<!--" * (n // 4),
    "backticks": lambda n: "` " * (n // 2),
    "percents": lambda n: "%%% " * (n // 4),
    "percents in lines": lambda n: "%%\nx\n" * (n // 5),
    "percents in items": lambda n: "- %%\n" * (n // 5) + "x",
    "percents in quotes": lambda n: "> %%\n>> a\n" * (n // 10),
    "one percent": lambda n: "%%" + "\na" * (n // 2),
}


def html_of(text: str) -> str:
    return str(render_markdown(text, *LINKS))


def test_links_lead_to_notes_files_and_external_pages() -> None:
    shown = {
        "[[Known note]]": '<a href="/console/notes/id-1" class="wikilink">Known note</a>',
        "[[Known note#Part|so]]": '<a href="/console/notes/id-1#n-part" class="wikilink">so</a>',
        "[[./other#Part|the [1]]]": '<a href="/console/notes/id-2#n-part" class="wikilink">the [1]</a>',
        "[[../far|so]]": '<a href="/console/notes/id-3" class="wikilink">so</a>',
        "[[Nobody]]": 'href="/console/notes?q=Nobody" class="wikilink broken"',
        "[[v2.0 notes]]": 'class="wikilink broken"',
        "[[scan.pdf]]": '<a href="/console/files/scan.pdf" class="wikilink">scan.pdf</a>',
        "![[a b.png]]": '<img src="/console/files/a%20b.png" alt="a b.png">',
        "![[a.png|300]]": 'width="300"',
        "[x](other.md#A%20part)": '<a href="/console/notes/id-2#n-a-part">x</a>',
        "[x](paper.pdf)": '<a href="/console/files/folder/paper.pdf">x</a>',
        "[x](../../../../etc/passwd)": '<a href="/console/files/etc/passwd">x</a>',
        "[x](https://example.org)": 'class="external"',
        "[x](http://[bad)": ">x</a>",
        "`[[Known note]]`": "<code>[[Known note]]</code>",
    }
    for text, expected in shown.items():
        assert expected in html_of(text), (text, html_of(text))


def test_vault_specific_blocks_are_rendered() -> None:
    html = html_of("> [!warning]- Mind *this\n> and* that [[Known note]]\n> more")
    assert '<blockquote class="callout callout-warning">\n<p class="callout-title">Mind *this</p>' in html
    assert "and* that" in html
    assert 'href="/console/notes/id-1"' in html
    assert "more" in html
    tasks = html_of("- [ ] do\n- [x] done\n- plain")
    assert tasks.count('type="checkbox"') == 2
    assert tasks.count('checked=""') == 1
    assert 'align="right"' in html_of("|a|b|\n|-|-:|\n|1|2|")
    assert "<h1" not in html_of("# A\n\n<h1>B</h1>"), "the page's own title is its one first heading"


def test_obsidian_comments_are_not_shown() -> None:
    shown = {
        "%% hidden %%": "",
        "a\n\n%%\nhidden\n\n# hidden\n%%\nb": "<p>a</p>\n<p>b</p>\n",
        "a\n%%\nhidden\n%%\nb": "<p>a</p>\n<p>b</p>\n",
        "so %%hidden [[x]]%% goes": "<p>so  goes</p>\n",
        "%%hidden%% so": "<p> so</p>\n",
        "- %%\n  hidden\n  %%\n- b": "<ul>\n<li></li>\n<li>b</li>\n</ul>\n",
        "100%% sure\n\nand": "<p>100%% sure</p>\n<p>and</p>\n",
        "- %%\n\nsaid": "<ul>\n<li>%%</li>\n</ul>\n<p>said</p>\n",
        "`%% code %%`": "<p><code>%% code %%</code></p>\n",
        "```\n%% code\n%%\n```": '<pre tabindex="0"><code>%% code\n%%\n</code></pre>\n',
    }
    assert {text: html_of(text) for text in shown} == shown


def test_plain_text_is_shown_completely() -> None:
    for text in ("[[" * 500 + "end", "|a|" + "b|" * 300 + "\n|-|" + "-|" * 300 + "\n" + "x\n" * 50 + "end"):
        assert "end" in html_of(text)
    nested = html_of("<i>" * 20 + "end")
    assert "&lt;i&gt;" in nested
    assert "end" in nested


def test_rendered_note_contains_no_active_payload() -> None:
    """behaviour 236: scripts, handlers, links, SVG and HTML in notes have no effect."""
    ways = ("{}", "> {}", "- {}", "# {}", "| a |\n|---|\n| {} |", "*{}*")
    texts = [LONG_LINE, *(way.replace("{}", payload) for payload in PAYLOADS for way in ways)]
    shown = {text: parse(f'<div class="prose">{html_of(text)}</div>') for text in texts}
    assert {text: found for text, page in shown.items() if (found := dangers(page))} == {}
    assert len(PAYLOADS) >= 60


@pytest.mark.slow
def test_rendering_hostile_texts_takes_linear_time() -> None:
    patterns = single_patterns()
    with steady():
        grown = {name: find_growth(html_of, make, 10_000) for name, make in HOSTILE.items()}
        grown |= {f"one of {name}": find_growth(html_of, make, 1_400) for name, make in patterns.items()}
        grown |= {
            f"outline: {name}": find_growth(scan_headings, make, 1_400) for name, make in patterns.items()
        }
    assert {name: growth for name, growth in grown.items() if growth is not None} == {}


def test_rendered_parts_are_split_at_block_boundaries() -> None:
    text = "\n\n".join(f"Paragraph {i}. " + "word " * 100 for i in range(200))
    at, parts = 0, list[str]()
    while at < len(text):
        made = draft(text, "a.md", at)
        shown = finish(text, "a.md", made, {})
        assert shown.end - shown.start <= 40_000
        parts.append(text[shown.start : shown.end])
        at = shown.end
    assert "".join(parts) == text
    assert all(part.startswith("Paragraph") for part in parts)


def test_parsed_markdown_lists_link_targets_before_rendering() -> None:
    parsed = parse_markdown("[[A]] [b](b.md) [[c#d|e]] `[[f]]`[^1]\n\n[^1]: [[g]]", "x/y.md")
    assert {"A", "c", "g", "x/b"} <= parsed.targets
    assert "f" not in parsed.targets
