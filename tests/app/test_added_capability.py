"""The example capability of docs/develop.md, which is added to a copy of Lithos and removed again."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import define
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.e2e.clients import call
from tests.e2e.process import LITHOS, clean_environment
from tests.house import PACKAGE, ROLES

PAGE: Final = (PACKAGE.parent / "docs" / "develop.md").read_text(encoding="utf-8")
LISTED: Final = "app/capabilities.py"
#: Line that imports the capability in the capability list. The list contains capabilities and package names.
IMPORT: Final = "from lithos.words.capability import WORDS\n"
LAST: Final = re.compile(r'^    (?:VAULTS|"vaults"),$', re.MULTILINE)
TOOL: Final = "lithos_note_words"


def shown_files() -> dict[str, str]:
    """Return the capability files that docs/develop.md shows, by path in `lithos/`."""
    blocks = re.findall(r"^```python\n# lithos/(\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return dict(blocks)


@contextmanager
def added(copy: Path, files: Mapping[str, str]) -> Iterator[None]:
    """Add the files and the capability list entry to a copy of Lithos during the block."""
    listed = copy / "lithos" / LISTED
    before = listed.read_text(encoding="utf-8")
    imported = before.replace("\nfrom lithos.", f"\n{IMPORT}from lithos.", 1)
    line = "WORDS," if "VAULTS," in before else '"words",'
    after, lines = LAST.subn(rf"\g<0>\n    {line}", imported)
    assert lines == 1
    listed.write_text(after, encoding="utf-8")
    folder = copy / "lithos" / "words"
    folder.mkdir()
    for path, text in {"words/__init__.py": "", **files}.items():
        (copy / "lithos" / path).write_text(text, encoding="utf-8")
    yield
    for file in folder.glob("*.py"):
        file.unlink()
    listed.write_text(before, encoding="utf-8")


def copy_lithos(folder: Path) -> None:
    """Create a package of links to the Lithos modules, with its own copy of the capability list."""
    (folder / "lithos" / "app").mkdir(parents=True)
    for path in (*PACKAGE.iterdir(), *(PACKAGE / "app").iterdir()):
        if path != PACKAGE / "app" and path.name != "__pycache__":
            (folder / "lithos" / path.relative_to(PACKAGE)).symlink_to(path)
    listed = folder / "lithos" / LISTED
    listed.unlink()
    listed.write_bytes((PACKAGE / LISTED).read_bytes())


@define
class Seen:
    """The tools and answers that a client sees, and the server's log."""

    tools: set[str]
    #: Answer of `TOOL`, or None if the server does not have this tool.
    words: dict[str, Any] | None
    statistics: dict[str, Any]
    log: str


async def look(copy: Path, title: str) -> Seen:
    """Start the copy with a rate of 4 words per minute, and let the tool count the words of a new note."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=[*LITHOS[1:], "-d", str(copy / "data"), "serve", "--tools", "full", "--no-watch"],
        env=clean_environment({"PYTHONPATH": str(copy), "LITHOS_WORDS__PER_MINUTE": "4"}),
        cwd=copy,
    )
    with (copy / "log").open("w+") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            note = await call(client, "lithos_write", title=title, content="One two three.", agent="ann")
            words = await call(client, TOOL, id=note["id"]) if TOOL in tools else None
            statistics = await call(client, "lithos_stats")
        errors.seek(0)
        return Seen(tools, words, statistics, errors.read())


@pytest.mark.slow
async def test_example_capability_works_and_leaves_no_trace(tmp_path: Path) -> None:
    """The setting, tool and statistic exist only while the folder and its list entry exist."""
    copy_lithos(tmp_path)
    with added(tmp_path, shown_files()):
        there = await look(tmp_path, "First")
    assert there.words is not None
    assert (there.words["words"], there.words["minutes"]) == (3, 0.75)
    assert there.statistics["notes_counted"] == 1
    assert "setting ignored" not in there.log

    gone = await look(tmp_path, "Second")
    assert gone.words is None
    assert there.tools - gone.tools == {TOOL}
    assert set(there.statistics) - set(gone.statistics) == {"notes_counted"}
    assert "LITHOS_WORDS__PER_MINUTE is not a setting" in gone.log


def test_page_shows_capability_files_under_their_roles() -> None:
    files = [Path(path) for path in shown_files()]
    assert {file.parent.name for file in files} == {"words"}
    roles = [ROLES.index(file.stem) for file in files]
    assert roles == sorted(roles)
    assert len(roles) >= 4
