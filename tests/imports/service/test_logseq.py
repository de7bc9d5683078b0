"""Import of a Logseq graph with its links, and the list of dead links (behaviours 369, 370)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lithos.imports.files.markdown import MarkdownSource
from lithos.notes.catalogue.catalogue import Catalogue
from tests.imports.service.test_importing import bring, numbers
from tests.servers import VAULT, Lithos, put_note, serving

BLOCK = "634fae2e-edab-42e0-8385-59df3fc3da0e"
STYLES = pytest.mark.parametrize("storage", [{}, VAULT], ids=["plain", "vault"])
FILES = {
    "logseq/config.edn": '{:journal/page-title-format "MMM do, yyyy"}',
    "pages/project___alpha.md": (
        "title:: project/alpha\nalias:: Alpha One\ntags:: work, [[Deep Dive]]\ntype:: plan\n\n"
        f"- The plan\n  id:: {BLOCK}\n"
    ),
    "pages/alpha.md": "- another page\n",
    "pages/area%2Fhealth.md": "- legacy name\n",
    "pages/what%3F.md": "- a question\n",
    "pages/Titled.md": "---\ntitle: By Key\n---\n- text\n",
    "pages/Heading.md": "# A heading\n\ntext\n",
    "pages/Home.md": (
        "- [[project/alpha]], [[Alpha One]], [[what?]], [[area/health]], [[By Key]], [[Heading]]\n"
        "- [[Nov 28th, 2026]] and [[2026-11-27]], [[Saturday, 28-11-2026]], [[alpha]]\n"
        f"- (({BLOCK})) and `[[project/alpha]]`\n"
    ),
    "journals/2026_11_28.md": "- today [[Home]]\n",
    "journals/2026_11_27.md": "- yesterday\n",
}


def put_graph(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / "graph" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root / "graph"


async def targets(lithos: Lithos, path: str) -> dict[str, str | None]:
    """Return the link targets of a note, with the path of each target."""
    catalogue = lithos.server.get(Catalogue)
    entry = catalogue.at_path(path)
    assert entry is not None
    found = {}
    for target in entry.links:
        note_id = catalogue.graph.resolve(target)
        linked = catalogue.get(note_id) if note_id else None
        found[target] = linked.path if linked else None
    return found


@STYLES
async def test_logseq_links_resolve_to_their_pages(tmp_path: Path, storage: dict[str, Any]) -> None:
    """behaviour 369"""
    graph = put_graph(tmp_path, FILES)
    before = {file: file.read_bytes() for file in graph.rglob("*.md")}
    async with serving(tmp_path / "data", storage=storage) as lithos:
        report = await bring(lithos, MarkdownSource(), graph, into="lg")
        assert numbers(report) == {"created": 9}
        found = await targets(lithos, "lg/pages/Home.md")
        assert found == {
            "project___alpha": "lg/pages/project___alpha.md",  # alpha.md has only the last part of the name
            "Alpha One": "lg/pages/project___alpha.md",
            "what?": "lg/pages/what%3F.md",
            "area/health": "lg/pages/area%2Fhealth.md",
            "By Key": "lg/pages/Titled.md",
            "Heading": "lg/pages/Heading.md",
            "Nov 28th, 2026": "lg/journals/2026_11_28.md",
            **({"2026-11-27": "lg/journals/2026_11_27.md"} if "2026-11-27" in found else {}),
            "Saturday, 28-11-2026": "lg/journals/2026_11_28.md",
            "alpha": "lg/pages/alpha.md",
            f"project___alpha#^{BLOCK}": "lg/pages/project___alpha.md",
        }
        dead = [row["reason"] for row in report.to_json()["rows"] if row["what"] == "dead_link"]
        assert dead == ["[[Deep Dive]] leads to no note"]
        plan = await lithos.call("lithos_read", path="lg/pages/project___alpha.md")
        assert (plan["title"], plan["metadata"]["tags"]) == ("project/alpha", ["work", "Deep-Dive"])
        assert plan["metadata"]["aliases"] == ["Alpha One"]
        assert plan["metadata"]["extra"]["type"] == "plan"
        assert plan["content"].startswith("title:: project/alpha\nalias:: Alpha One\n")
        assert plan["id"] != BLOCK
        journal = await lithos.call("lithos_read", path="lg/journals/2026_11_28.md")
        assert journal["title"] == "Nov 28th, 2026"
        assert "`[[project/alpha]]`" in (lithos.knowledge / "lg/pages/Home.md").read_text()
        again = await bring(lithos, MarkdownSource(), graph, into="lg")
        assert numbers(again) == {"unchanged": 9}
    assert {file: file.read_bytes() for file in graph.rglob("*.md")} == before


async def test_dead_logseq_links_are_listed(tmp_path: Path) -> None:
    """behaviour 370: covers the plan, the import and all link types.

    Links to existing or imported targets are not listed.
    """
    graph = put_graph(
        tmp_path,
        {
            "logseq/config.edn": "{}",
            "pages/A.md": (
                f"- [[B]], [[Missing Page]], [[Dec 1st, 2026]], (({BLOCK})), [[There]], ![[img.png]]\n"
            ),
            "pages/B.md": "- [[A]] `[[code]]`\n",
            "assets/img.png": "x",
        },
    )
    put_note(tmp_path / "data", "There.md", "# There\n")
    async with serving(tmp_path / "data") as lithos:
        planned = await bring(lithos, MarkdownSource(), graph, into="lg", dry_run=True)
        report = await bring(lithos, MarkdownSource(), graph, into="lg")
        for each in (planned, report):
            told = [
                (row["position"], row["reason"])
                for row in each.to_json()["rows"]
                if row["what"] == "dead_link"
            ]
            assert [where for where, _ in told] == ["pages/A.md"] * 3
            assert [reason.split(" leads")[0] for _, reason in told] == [
                "[[Missing Page]]", "[[Dec 1st, 2026]]", f"(({BLOCK}))",
            ]  # fmt: skip
            assert each.to_json()["dead_links"] == 3


async def test_dead_links_above_the_list_limit_are_counted(tmp_path: Path) -> None:
    """behaviour 370"""
    graph = put_graph(tmp_path, {"a.md": "".join(f"[[Missing page {i}]]\n" for i in range(1_200))})
    async with serving(tmp_path / "data") as lithos:
        report = (await bring(lithos, MarkdownSource(), graph)).to_json()
    assert (report["dead_links"], report["unlisted"]["dead_link"]) == (1_200, 1_100)
