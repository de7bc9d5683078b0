"""Written text reads back verbatim, apart from surrounding blank lines (docs/spec/notes.md §2)."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

import trio
from hypothesis import given
from hypothesis import strategies as st

from lithos.text.markdown import plain_title
from lithos.text.yaml.layout import frontmatter_at, trim_content
from tests.servers import Lithos, put_note, serving

CONTENTS = [
    "",
    "```\n---\nid: fake\n---\nbody",
    "---",
    "---\n\n# Title\n\ntext",
    "# Title",
    "# Title\n\n# Title\n\ntext",
    "# Other heading\n\ntext",
    "## Second level first\n\n# Then first level",
    "#\n\ntext",
    "# \n# x",
    "Setext\n======\n",
    "```\n# code\n```",
    "line\r\nbreaks\r\nof another world",
    "lone\rreturn",
    "mixed\r\nand\nunix",
    "tabs\tand trailing spaces  \n\nend",
    "    indented first line stays",
    "\ufeffbyte-order mark",
    "\u2028separators\u2029\x85\x0b\x0c inside",
    "\x01\x1b[31mcontrol\x7f",
    "...\n---\n...",
    "<!-- comment -->\n<script>alert(1)</script>",
    "[[a]] [[b|c]] [[",
    "{{template}} %%comment%% $x$",
    "\\n \\t \\\\", "a\n\n\n\n\nb", "日本語\n\nعربي\n\n🚀",
]  # fmt: skip


async def check(lithos: Lithos, note: str, title: str, content: str) -> None:
    read = await lithos.read(note)
    assert (read["title"], read["content"]) == (title, trim_content(content))


async def test_unusual_content_reads_back_after_creation_update_and_restart(tmp_path: Path) -> None:
    """One of the texts begins with the title as its heading."""
    written: list[tuple[str, str, str]] = []
    async with serving(tmp_path) as lithos:
        for number, each in enumerate(CONTENTS):
            title, old = f"Title {number}", f"Old {number}"
            content = each.replace("Title", title)
            new = await lithos.create(title, content)
            await check(lithos, new, title, content)
            changed = await lithos.create(old, "something else")
            await lithos.write(old, content, id=changed)
            await check(lithos, changed, old, content)
            await lithos.write(title, content, id=new)
            written += [(new, title, content), (changed, old, content)]
        for note in written:
            await check(lithos, *note)
    async with serving(tmp_path, settled=False) as lithos:
        for note in written:
            await check(lithos, *note)


async def test_note_of_another_system_keeps_its_line_breaks(tmp_path: Path) -> None:
    file = put_note(tmp_path, "n.md", b"\xef\xbb\xbf---\r\nkey: v\r\n---\r\n\r\n# N\r\n\r\nold\r\n")
    async with serving(tmp_path) as lithos:
        note = (await lithos.call("lithos_read", path="n"))["id"]
        await lithos.write("N", "one\ntwo\r\nthree", id=note)
        await check(lithos, note, "N", "one\ntwo\nthree")
        data = file.read_bytes()
        assert data.startswith(b"\xef\xbb\xbf---\r\nkey: v\r\n")
        assert data.count(b"\n") == data.count(b"\r\n")


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)
markdown = st.lists(
    st.sampled_from(
        ["# ", "## ", "---", "\n", "\n\n", "\r\n", "```", "- ", " ", "text", "[[a]]", "\t", ":", "é"]
    ),
    max_size=12,
).map("".join)
contents = (texts | markdown).filter(lambda text: frontmatter_at(text) is None)
notes = st.tuples(texts, contents, contents)


async def test_random_notes_read_back_unchanged(lithos: Lithos) -> None:
    numbers = count()

    @given(notes)
    def write_and_read(note: tuple[str, str, str]) -> None:
        trio.from_thread.run(write_one, lithos, next(numbers), *note)

    await trio.to_thread.run_sync(write_and_read)


async def write_one(lithos: Lithos, number: int, title: str, first: str, second: str) -> None:
    wanted = plain_title(one_line(f"{number} {title}"))
    note = await lithos.create(
        f"{number} {title}", first, path=f"n{number}.md", metadata={"t": title, "f": first}
    )
    await check(lithos, note, wanted, first)
    await lithos.write(f"{number} {title}", second, id=note, tags=[second[:20]])
    await check(lithos, note, wanted, second)
    read = (await lithos.read(note))["metadata"]
    assert read["extra"] == {"t": title, "f": first}
    assert read["tags"] == ([second[:20].strip()] if second[:20].strip() else [])


def one_line(text: str) -> str:
    """Return a title in which each line break, with the whitespace around it, is replaced by one space."""
    return " ".join(
        part.strip()
        for part in re.split(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", text.strip())
        if part.strip()
    )
