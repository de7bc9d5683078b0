"""Small realistic vault with frontmatter, line endings and conventions of other programs."""

from __future__ import annotations

import os
from pathlib import Path

#: A note of an Obsidian user. It has comments, and keys that Lithos does not use.
COMMENTED = b"""\
---
# kept by hand, please do not reorder
title: "Reading list"   # shown in the sidebar
aliases: [Books, 'To read']
tags:
  - reading   # everything on paper
  - someday
cssclasses:   wide-page
rating: 007
due: 2026-03-01
nested:
    deep: {a: 1,   b: [x,y]}
---
# Reading list

- [[Raft]] by Ongaro
- [[notes/Caf\xc3\xa9 culture|the caf\xc3\xa9 one]]


Trailing spaces stay.\x20\x20
The last line.
"""

FILES: dict[str, bytes] = {
    "Reading list.md": COMMENTED,
    "Raft.md": b"# Raft\n\nConsensus by leader election; the log is replicated to followers.\n",
    "notes/Caf\u00e9 culture.md": "Café culture in Vienna: melange and newspapers.\n".encode(),
    "notes/windows.md": (
        b"---\r\ntitle: From Windows\r\ntags: [crlf]\r\n# a comment\r\ncolor: '#ff0000'\r\n---\r\n"
        b"\r\nLine one about zanzibar.\r\nLine two.\r\n"
    ),
    "notes/bom.md": "\ufeff---\ntitle: With BOM\nx-custom: yes\n---\nThe quokka note.\n".encode(),
    "journal/2026-01-05.md": b"Walked along the canal. No frontmatter here, and no final newline",
    "journal/2026-01-06.md": b"",
    "\u65e5\u672c/\u6771\u4eac.md": "---\ntitle: 東京大学\n---\n本郷の研究室について。\n".encode(),
    "projects/plan.md": (
        b"---\ntitle: Plan\nstatus: someday\nid: not-a-uuid\nconfidence: high\n---\n"
        b"# Plan\n\n```\n---\nnot: frontmatter\n---\n```\n[[Reading list]] [[Nowhere]]\n"
    ),
    "drawing.canvas": b'{"nodes":[]}',
    ".obsidian/app.json": b'{"vimMode": true}',
    "attachments/pixel.png": b"\x89PNG\r\n\x1a\n\x00",
}
NOTES = sum(path.endswith(".md") for path in FILES)
#: An old and unusual time in nanoseconds. A rewritten file cannot have this time by chance.
MTIME_NS = 1_600_000_000_123_456_789


def make_vault(data: Path) -> Path:
    """Write the vault below `data/knowledge`. Return that folder."""
    folder = data / "knowledge"
    for path, content in FILES.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        os.utime(file, ns=(MTIME_NS, MTIME_NS))
    return folder


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return bytes and modification time (ns) of every file."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
