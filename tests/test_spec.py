"""Contract in `docs/spec/`. Every cited section exists, and each behaviour has a test that names it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SPEC = ROOT / "docs" / "spec"
CITED = re.compile(r"docs/spec/([\w-]+\.md)((?:(?:,|;)? ?(?:and |to )?§\d+(?:\.\d+)*)*)")
REFERENCE = re.compile(r"\b([a-z]+(?:-[a-z]+)?) §(\d+(?:\.\d+)*)")
NUMBERED = re.compile(r"^(\d+)\. ", re.MULTILINE)
TESTED = re.compile(r"\bbehaviou?rs?\s+(\d[\d,; and\n]*)", re.IGNORECASE)


def sources() -> Iterator[Path]:
    for folder in ("lithos", "tests", "bench", "docs"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def sections(page: Path) -> set[str]:
    """Return the heading numbers of a page (`## 4. Modes`, `### 1.2 Arguments`)."""
    return set(re.findall(r"^#{2,4} (\d+(?:\.\d+)*)\.? ", page.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_spec_citation_in_code_and_tests_has_a_target() -> None:
    """behaviour 299"""
    found = 0
    for path in sources():
        if path == Path(__file__):
            continue
        for name, cited in CITED.findall(path.read_text(encoding="utf-8")):
            assert (SPEC / name).is_file(), (
                f"{path.relative_to(ROOT)} cites docs/spec/{name}, which is not there"
            )
            missing = set(re.findall(r"§(\d+(?:\.\d+)*)", cited)) - sections(SPEC / name)
            assert not missing, f"{path.relative_to(ROOT)} cites sections {missing} of docs/spec/{name}"
            found += 1
    assert found > 150


def test_no_file_cites_an_external_specification() -> None:
    names = "|".join(page.stem for page in SPEC.glob("*.md"))
    elsewhere = re.compile(rf"\b(?:{names})$", re.IGNORECASE)
    word = re.compile(r"\s+spec(?:ification)?\b", re.IGNORECASE)
    cited = [
        path
        for path in sources()
        if path != Path(__file__)
        for text in [path.read_text()]
        for found in word.finditer(text)
        if elsewhere.search(text[max(0, found.start() - 40) : found.start()])
    ]
    assert cited == []


def test_references_in_spec_pages_have_targets() -> None:
    """`search §6` is section 6 of search.md, and `mcp §1` is section 1 of mcp.md."""
    pages = {other.stem: sections(other) for other in SPEC.glob("*.md")}
    assert len(pages) > 5
    missing = [
        f"{page.name}: {name} §{section}"
        for page in sorted(SPEC.glob("*.md"))
        for name, section in REFERENCE.findall(page.read_text(encoding="utf-8"))
        if name in pages and section not in pages[name]
    ]
    assert missing == []


def test_every_spec_file_is_in_the_map() -> None:
    readme = (SPEC / "README.md").read_text(encoding="utf-8")
    assert {page.name for page in SPEC.iterdir()} == set(
        re.findall(r"^\| `([\w-]+\.md)` \|", readme, re.MULTILINE)
    )


@pytest.mark.needs("access", "attachments", "clients", "imports", "proposals", "sessions", "vaults")
def test_each_behaviour_has_a_unique_number_and_a_test() -> None:
    """behaviour 299"""
    numbers = [int(each) for each in NUMBERED.findall((SPEC / "behaviours.md").read_text(encoding="utf-8"))]
    assert len(numbers) == len(set(numbers)) > 250
    assert numbers == sorted(numbers)
    tested = {
        int(number)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for named in TESTED.findall(path.read_text(encoding="utf-8"))
        for number in re.findall(r"\d+", named)
    }
    assert set(numbers) - tested == set()
