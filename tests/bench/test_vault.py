"""The benchmark vault: the same for a seed, and holding what makes other people's vaults hard to serve."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
import yaml

from bench import vault

NOTES = 300
#: A change here makes measurements before and after it incomparable.
KNOWN_HASH = "0bf1be47e0eb10f82bbfe96f08fff13517c19a574700fac26db2c6b6132ef4b5"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vault")


@pytest.fixture(scope="module")
def made(folder: Path) -> vault.Made:
    return vault.generate(folder, NOTES, seed=7)


@pytest.fixture(scope="module")
def texts(folder: Path, made: vault.Made) -> dict[str, str]:
    """Every note that is to be served, by its path."""
    outside = ("Templates/", "Archive/", ".trash/", "Private draft.md")
    paths = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.md"))]
    served = [path for path in paths if not path.startswith(outside)]
    assert len(paths) - len(served) == made.templates + made.ignored
    return {path: (folder / path).read_bytes().decode("utf-8-sig") for path in served}


def frontmatter(text: str) -> str | None:
    found = re.match(r"---\r?\n(.*?)^---\r?\n", text, re.DOTALL | re.MULTILINE)
    return found[1] if found else None


def reads(text: str) -> bool:
    try:
        yaml.safe_load(frontmatter(text) or "")
    except yaml.YAMLError:
        return False
    return True


def test_a_seed_names_one_vault_for_good(folder: Path, made: vault.Made) -> None:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    assert digest.hexdigest() == KNOWN_HASH


def test_it_has_as_many_notes_as_were_asked_for(texts: dict[str, str], made: vault.Made) -> None:
    assert len(texts) == made.notes == NOTES


def test_exactly_the_fifteen_named_notes_have_frontmatter_that_does_not_parse(
    texts: dict[str, str], made: vault.Made
) -> None:
    assert len(made.broken) == 15
    assert [path for path, text in texts.items() if not reads(text)] == made.broken


def test_one_note_is_long_and_one_has_thousands_of_links(texts: dict[str, str], made: vault.Made) -> None:
    assert len(texts[made.long_note]) == 400_000
    assert texts[made.linking_note].count("](") + texts[made.linking_note].count("[[") == 6_000


def test_titles_repeat_in_different_folders(texts: dict[str, str], made: vault.Made) -> None:
    names = [path.rsplit("/", 1)[-1] for path in texts]
    assert len(names) - len(set(names)) > 3
    assert len({path.lower() for path in texts}) == NOTES


WRITTEN = (
    r"\[\[[^\]|#]+\]\]",
    r"\[\[[^\]]+\|[^\]]+\]\]",
    r"!\[\[[^\]]+\.png\|300\]\]",
    r"\]\([^)]*%20[^)]*\.md\)",
    r"\]\(<[^>]+\.md>\)",
    r"#project/[a-z-]+/[a-z]+",
    r"> \[!\w+\]- ",
    r"```dataview",
    r"^%%",
    r"<!--",
    r"\[!\[Build\]",
    r"^aliases:",
    r"^tag: ",
    r"^# \[\[",
    r"- \[x\] ",
    r"\[\^1\]: ",
    r"\\\|",
    r"\r\n",
)


def test_it_holds_what_people_write(texts: dict[str, str]) -> None:
    whole = list(texts.values())
    assert [
        shape for shape in WRITTEN if not any(re.search(shape, text, re.MULTILINE) for text in whole)
    ] == []


def test_a_third_of_the_notes_has_no_frontmatter(texts: dict[str, str]) -> None:
    without = sum(frontmatter(text) is None for text in texts.values())
    assert 0.2 < without / NOTES < 0.5


def test_obsidian_tells_what_it_ignores_and_where_templates_are(folder: Path, made: vault.Made) -> None:
    app = json.loads((folder / ".obsidian/app.json").read_text())
    assert app["userIgnoreFilters"] == ["Archive/", "Private draft.md"]
    assert json.loads((folder / ".obsidian/templates.json").read_text())["folder"] == "Templates"
    assert (folder / "Templates/Daily.md").is_file()


def test_attachments_are_small_pictures_and_papers(folder: Path, made: vault.Made) -> None:
    files = [path for path in folder.joinpath("Attachments").rglob("*") if path.is_file()]
    assert len(files) == made.attachments
    assert {path.suffix for path in files} == {".png", ".pdf"}
    assert max(path.stat().st_size for path in files) < 1_000


def test_too_few_notes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="60 notes or more"):
        vault.generate(tmp_path, 59)


def test_the_command_tells_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vault.main([str(tmp_path), "--notes", "100"])
    told = json.loads(capsys.readouterr().out)
    assert told["notes"] == 100
    assert (tmp_path / told["long_note"]).is_file()
