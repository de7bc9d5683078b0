"""Examples in Markdown pages: which blocks are run, and what they must print.

A line `<!-- run -->` before a block of `sh` has it run; `<!-- prints -->` before the block after it says
what stdout must show: each of its lines, in this order, other lines between them; `…` stands for anything.
`<!-- file NAME -->` before a block of any language writes it to that file first.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from attrs import frozen

_BLOCK: Final = re.compile(
    r"(?:^<!-- (?P<mark>run|prints|file (?P<name>\S+)) -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_BETWEEN: Final = "\x1e"


@frozen
class Block:
    """One fenced block; `mark` is what the comment before it asks for."""

    mark: Literal["run", "prints", "file", ""]
    name: str
    language: str
    text: str
    line: int


def read_blocks(page: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    return [
        Block(
            mark=(found["mark"] or "").partition(" ")[0],  # type: ignore[arg-type]
            name=found["name"] or "",
            language=found["language"],
            text=found["text"],
            line=page.count("\n", 0, found.start("text")),
        )
        for found in _BLOCK.finditer(page)
    ]


def run_blocks(
    blocks: Sequence[Block], folder: Path, environment: dict[str, str], within: float
) -> list[str]:
    """Run the marked blocks in one shell, with `folder` as its current one; the stdout of each.

    The shell ends at the first command that fails: `AssertionError` with what it said.
    """
    script = ["set -eu"]
    for block in blocks:
        if block.mark == "file":
            (folder / block.name).write_text(block.text, encoding="utf-8")
        elif block.mark == "run":
            script.append(block.text + f"\nprintf '{_BETWEEN}'")
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(script)],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=within,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}\nafter: {done.stdout}"
    return done.stdout.split(_BETWEEN)[:-1]


def find_unprinted(expected: str, printed: str) -> str | None:
    """The first line of `expected` that does not appear in its place, or None."""
    lines = iter(printed.splitlines())
    for wanted in expected.splitlines():
        pattern = ".*".join(map(re.escape, wanted.strip().split("…")))
        if wanted.strip() and not any(re.fullmatch(pattern, line.strip()) for line in lines):
            return wanted
    return None
