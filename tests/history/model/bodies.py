"""Generated note bodies for property tests of outlines and edits, and note files that contain them."""

from __future__ import annotations

from hypothesis import strategies as st

#: Blocks that are difficult to handle next to headings and edits.
BLOCKS = (
    "Plain text.", "Two lines\nof text.", "Trailing blanks  \nand a break.",
    "Emoji 👩‍👩‍👧 and e\u0301, \u202eright to left\u202c, 語。", "\tcode by a tab",
    "    # indented, no heading", "```\n# in a fence\n\n```", "~~~ md\n## in a fence of tildes\n~~~",
    "- item\n\n  # heading in an item\n- [ ] task\n- [x] done",
    "1. one\n   ```\n   # in a fence in a list\n   ```", "> [!note] Callout\n> # in a callout\n> text",
    "> quoted\nlazy", "<!--\n# in a comment\n\n## still\n-->", "<div>\n# in HTML\n</div>",
    "<details>\n<summary>x</summary>\n\nshown\n\n</details>", "Footnote[^1].\n\n[^1]: Its text.",
    "[link]: https://example.org\n'a title'", "| a | b |\n|---|---|\n| 1 | 2 |", "***",
    "#tag is no heading", "\\# escaped", "$$\n# math\n$$", "%% # a comment of Obsidian %%",
    "no-break\u00a0space\u2028separator\x0bfeed",
)  # fmt: skip
HEADINGS = (
    "# One", "## Two", "## Two ##", "### Three", "   ### Indented", "## *Marked* `code` [[a|shown]]",
    "Setext\n===", "Setext\nof two lines\n---", "####### seven is none", "##", "## 語 👩‍👩‍👧 e\u0301",
    "## (top)", "## Two (2)", "#### Four\t#", "## a > b",
)  # fmt: skip
#: Blocks that only the end of the body closes.
OPEN = ("```\n# open fence", "<!-- open comment\n# x", "<script>\n# y", '[a]: b\n"open title', "> ```\n> x")

blocks = st.sampled_from((*BLOCKS, *HEADINGS, *HEADINGS))
gaps = st.sampled_from(("\n\n", "\n\n", "\n", "\n\n\n", "\n \t\n"))


@st.composite
def bodies(draw: st.DrawFn, *, is_open: bool = True) -> str:
    """Draw a body. It may have CRLF, lone CR or mixed line breaks, and may lack a final line break."""
    parts = draw(st.lists(blocks, max_size=9))
    if is_open and draw(st.integers(0, 4)) == 0:
        parts.insert(draw(st.integers(0, len(parts))), draw(st.sampled_from(OPEN)))
    body = draw(st.sampled_from(("", "\n", "\n\n", "  \n")))
    for number, part in enumerate(parts):
        body += (draw(gaps) if number else "") + part
    body += draw(st.sampled_from(("", "\n", "\n", "\n\n\n", "  ")))
    kind = draw(st.integers(0, 7))
    if kind in (0, 1):
        return body.replace("\n", "\r\n")
    if kind == 2 and "\n" in body:
        at = draw(st.integers(0, len(body)))
        return body[:at] + body[at:].replace("\n", draw(st.sampled_from(("\r\n", "\r"))))
    return body
