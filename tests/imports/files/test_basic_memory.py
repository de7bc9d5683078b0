"""basic-memory addresses, which become links to notes (behaviour 370)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.imports.files.basic_memory import BasicMemory
from tests.imports.files.samples import read, records
from tests.imports.service.test_importing import bring
from tests.servers import serving

NOTE = "---\ntitle: {title}\ntype: note\npermalink: {permalink}\n---\n\n# {title}\n\n{text}\n"


def put(root: Path, *notes: tuple[str, str, str, str]) -> Path:
    """Create the project `main`. Each note has a path, a title, a permalink and a text."""
    for path, title, permalink, text in notes:
        file = root / "main" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(NOTE.format(title=title, permalink=permalink, text=text))
    return root / "main"


LINKS = (
    "[a](memory://main/docs/auth), [b](memory://docs/auth), [c](memory://docs/auth.md#part), "
    "[d](memory://docs/deep-note), [[memory://main/docs/auth]], [[main::docs/auth|shown]], "
    "[[memory://docs/deep-note#part]], [[main/docs/auth]] [all](memory://docs/*) [e](memory://other/docs/x) "
    "`[f](memory://docs/auth)` [[Auth]]"
)


@pytest.mark.parametrize("prefix", ["main/", ""], ids=["with project", "without"])
def test_memory_addresses_become_links_to_files(tmp_path: Path, prefix: str) -> None:
    """behaviour 370: covers permalinks with and without the project name."""
    root = put(
        tmp_path,
        (
            "notes/home.md",
            "Home",
            f"{prefix}notes/home",
            LINKS + "\n\n- relates_to [[memory://main/docs/auth]]",
        ),
        ("docs/auth.md", "Auth", f"{prefix}docs/auth", "text"),
        ("docs/Deep Note.md", "Deep Note", f"{prefix}docs/deep-note", "text"),
    )
    found = records(read("basic-memory", root))["notes/home.md"]
    assert found.text is not None
    body = found.text.decode().split("# Home\n\n")[1]
    assert body.startswith(
        "[a](../docs/auth.md), [b](../docs/auth.md), [c](../docs/auth.md#part), [d](../docs/Deep%20Note.md), "
        "[[docs/auth|memory://main/docs/auth]], [[docs/auth|shown]], "
        "[[docs/Deep Note#part|memory://docs/deep-note]], [[docs/auth|main/docs/auth]] "
        "[all](memory://docs/*) [e](memory://other/docs/x) `[f](memory://docs/auth)` [[Auth]]"
    )
    assert found.content in found.text.decode()
    assert [(edge.relation, edge.target) for edge in found.edges] == [("related_to", "docs/auth.md")]
    assert found.dead == ("memory://other/docs/x",)
    assert (root / "notes/home.md").read_text().count("memory://main/docs/auth") == 3


async def test_memory_addresses_link_to_notes_and_unknown_addresses_are_listed(tmp_path: Path) -> None:
    """behaviour 370: covers every folder and two notes with the same file name."""
    root = put(
        tmp_path,
        (
            "home.md",
            "Home",
            "main/home",
            "[a](memory://main/a/x) [[memory://main/b/x]] [e](memory://other/y)",
        ),
        ("a/x.md", "One", "main/a/x", "text"),
        ("b/x.md", "Two", "main/b/x", "text"),
    )
    async with serving(tmp_path / "data") as lithos:
        report = (await bring(lithos, BasicMemory(), root, into="bm")).to_json()
        home = await lithos.call("lithos_read", path="bm/home.md")
        related = await lithos.call("lithos_related", id=home["id"], include=["links"])
        assert {each["title"] for each in related["links"]["outgoing"]} == {"One", "Two"}
        dead = [(row["position"], row["reason"]) for row in report["rows"] if row["what"] == "dead_link"]
        assert dead == [("home.md", "memory://other/y leads to no note")]
