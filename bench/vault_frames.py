"""What notes of a shared vault have in common: footers, lines on top, comments of tools, maps of contents.

With `python -m bench.vault DIR --frames` most notes of each area get the frame of that area, as programs and
templates write them: the same words around thousands of notes, with other addresses, dates and numbers in
them. A twentieth of the notes become maps of contents, which have hardly a word of their own.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from bench.vault_text import Place

#: Shares of the notes of an area that have its frame, and of all notes that are maps of contents.
FRAMED: Final = 0.9
MAPS: Final = 0.05

#: By area what stands above the text and below it; `{path}`, `{folder}`, `{day}` and `{number}` differ.
_FRAMES: Final = {
    "Projects": (
        "<!-- this header is written by the publishing script, edits are lost -->",
        "%% Hub footer: Please don't edit anything below this line %%\n\n# This note in GitHub\n\n"
        '<span class="git-footer">[Edit In GitHub](https://git.example.org/hub/blob/main/{path} "edit-note") '
        '| [Copy this note](https://raw.example.org/hub/main/{path} "copy-note") '
        '| [Download this vault](https://git.example.org/hub/archive/main.zip "download-vault")</span>',
    ),
    "Areas": (
        "> [!info] Team handbook\n> This page belongs to the team handbook of {folder}. "
        "Ask its owner before you change anything here.",
        "---\n\nThis page is licensed under CC BY 4.0. Send corrections to docs@example.org.\n\n"
        "*Last reviewed on {day} by the editors, revision {number}*",
    ),
    "Sources": (
        "[[Library]] / [[Reading list]] / [[Highlights]] / [[How to cite sources]]",
        "## Backlinks of this source\n\n"
        "```dataview\nTABLE rating, status FROM [[]] SORT file.mtime DESC\n```\n\n"
        "Imported from the reading service on {day}, {number} highlights, synchronised by the plugin",
    ),
    "Zettel": (
        "%%\nTemplate of the slip box: one thought a note, link it at once, cite where it comes from\n%%",
        "- Previous thought in this sequence:\n- Next thought in this sequence:\n"
        "- Sources used for this thought:",
    ),
    "Daily": (
        "What must be done today, what can wait until tomorrow, who waits for me?",
        "## Review of the day\n\n- [ ] What went well today and why?\n"
        "- [ ] What would I do in another way?\n\n## Notes created on this day\n\n"
        '```dataview\nLIST WHERE file.cday = date("{day}")\n```',
    ),
}


def framed(place: Place, text: str, others: Sequence[Place], seed: int) -> str:
    """The note as it stands in a vault with frames; an empty note stays one."""
    rng = random.Random(f"vault frame {seed} {place.index}")
    is_map, has_frame = rng.random() < MAPS and place.kind == "note", rng.random() < FRAMED
    number, linked = rng.choices(range(1, 90))[0], rng.choices(others, k=5)
    if not text:
        return text
    if is_map:
        text = "# Maps of Content\n\n" + "\n".join(f"- [[{other.name}]]" for other in linked) + "\n"
    if not has_frame:
        return text
    above, below = (
        part.format(
            path=quote(place.path), folder=place.folder, number=number, day=f"2024-0{1 + number % 9}-17"
        )
        for part in _FRAMES[place.folder.split("/")[0]]
    )
    newline = "\r\n" if "\r\n" in text else "\n"
    frontmatter, body = _parted(text, newline)
    whole = f"{above}\n\n\0\n\n{below}\n".replace("\n", newline)
    return frontmatter + whole.replace("\0", body.strip("\r\n"))


def _parted(text: str, newline: str) -> tuple[str, str]:
    """The frontmatter with a byte order mark, and the rest."""
    if not text.lstrip("\ufeff").startswith("---"):
        return ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
    end = text.index(f"{newline}---{newline}", 3) + len(f"{newline}---{newline}")
    return text[:end] + newline, text[end:]
