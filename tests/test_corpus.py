"""The benchmark corpus: the same for a seed, and shaped like notes."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
import yaml

from bench import corpus
from bench.words import TOPICS

NOTES = 50
#: A change here makes measurements before and after it incomparable: say so in the changelog.
KNOWN_HASH = "e987a68195344b513b5d6d1b11943c91033bca068b53c043ce640968ee859a7a"


def hash_of(directory: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*.md")):
        digest.update(path.relative_to(directory).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory: Path = tmp_path_factory.mktemp("corpus")
    corpus.main([str(directory), "--notes", str(NOTES), "--seed", "7"])
    return directory


def test_a_seed_names_one_corpus_for_good(written: Path) -> None:
    assert hash_of(written) == KNOWN_HASH


def test_another_seed_is_another_corpus(written: Path, tmp_path: Path) -> None:
    corpus.generate(tmp_path, NOTES, seed=8)
    assert hash_of(tmp_path) != hash_of(written)


def test_notes_are_about_two_kilobytes_in_folders_by_topic(written: Path) -> None:
    sizes = [path.stat().st_size for path in written.rglob("*.md")]
    assert len(sizes) == NOTES
    assert 1600 < sum(sizes) / NOTES < 2600
    folders = {path.relative_to(written).parts[0] for path in written.rglob("*.md")}
    assert folders <= set(TOPICS)
    assert len(folders) > 6


def test_most_notes_have_frontmatter_that_reads_as_yaml(written: Path) -> None:
    heads = []
    for path in written.rglob("*.md"):
        text = path.read_text()
        assert re.search(r"^# \S", text, re.MULTILINE)
        assert 2 <= len(re.findall(r"^## ", text, re.MULTILINE)) <= 4
        if text.startswith("---\n"):
            heads.append(yaml.safe_load(text.split("---\n")[1]))
    assert NOTES * 0.8 <= len(heads) < NOTES
    assert all({"id", "title", "author", "tags"} <= head.keys() for head in heads)
    assert len({head["id"] for head in heads}) == len(heads)
    assert any("review" in head for head in heads)


def test_links_lead_to_notes_of_the_corpus(written: Path) -> None:
    texts = [path.read_text() for path in written.rglob("*.md")]
    titles = {match for text in texts for match in re.findall(r"^# (.+)$", text, re.MULTILINE)}
    targets = [target for text in texts for target in re.findall(r"\[\[([^\]|#]+)", text)]
    assert set(targets) <= titles
    assert 3 < len(targets) / NOTES < 5


def test_the_number_of_links_can_be_chosen(tmp_path: Path) -> None:
    corpus.generate(tmp_path, 10, links_per_note=0)
    assert not any("[[" in path.read_text() for path in tmp_path.rglob("*.md"))


def test_queries_are_the_same_for_a_seed_and_find_words_of_the_corpus(written: Path) -> None:
    asked = corpus.queries(7, 40)
    assert asked == corpus.queries(7, 40)
    assert asked[:10] == corpus.queries(7, 10)
    assert asked != corpus.queries(8, 40)
    words = set(re.findall(r"\w+", " ".join(path.read_text().lower() for path in written.rglob("*.md"))))
    found = [query for query in asked if set(re.findall(r"\w+", query)) & words]
    assert len(found) > 36
