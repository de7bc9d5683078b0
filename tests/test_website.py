"""Hooks of the website (`docs/website.py`) and its navigation (`mkdocs.yml`)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from docs.website import make_tabs, on_post_build, redirect_links

HOST = "https://example.org/lithos"


@pytest.mark.parametrize(
    ("page", "text", "expected"),
    [
        ("run.md", "[a](tasks.md#claims)", "[a](tasks.md#claims)"),
        ("run.md", "[a](spec/tools.md)", "[a](spec/tools.md)"),
        ("spec/tools.md", "[a](../run.md)", "[a](../run.md)"),
        ("run.md", "[a](#here)", "[a](#here)"),
        ("run.md", "[a](https://example.com/../x)", "[a](https://example.com/../x)"),
        ("run.md", "[a](../README.md#quick-start)", "[a](index.md#quick-start)"),
        ("reference/edits.md", "[a](../../README.md)", "[a](../index.md)"),
        ("run.md", "[a](../README.md#tests)", f"[a]({HOST}/tree/main/README.md#tests)"),
        ("run.md", "[a](../tests/people)", f"[a]({HOST}/tree/main/tests/people)"),
        ("spec/tools.md", "[a](../../bench/report.md)", f"[a]({HOST}/tree/main/bench/report.md)"),
        ("run.md", "```\n[a](../x)\n```\n[b](../x)", f"```\n[a](../x)\n```\n[b]({HOST}/tree/main/x)"),
    ],
)
def test_links_to_files_outside_docs_lead_to_the_repository(page: str, text: str, expected: str) -> None:
    assert redirect_links(text, page, HOST) == expected


def test_marked_sections_become_tabs() -> None:
    sections = "### One\n\nfirst\n\n```sh\nx\n```\n\n### Two\n\nsecond\n\n"
    text = f"A\n\n<!-- tabs: begin -->\n\n{sections}<!-- tabs: end -->\n\n### B\n"
    assert make_tabs(text) == (
        'A\n\n=== "One"\n\n    first\n\n    ```sh\n    x\n    ```\n\n=== "Two"\n\n    second\n\n\n### B\n'
    )


def test_website_contains_the_source_of_each_page(tmp_path: Path) -> None:
    (tmp_path / "docs" / "spec").mkdir(parents=True)
    for name in ("a.md", "spec/b.md"):
        (tmp_path / "docs" / name).write_text(name, encoding="utf-8")
    on_post_build(config=SimpleNamespace(docs_dir=str(tmp_path / "docs"), site_dir=str(tmp_path / "site")))
    assert (tmp_path / "site" / "spec" / "b.md").read_text(encoding="utf-8") == "spec/b.md"
