"""The benchmark vault of attachments: the same for a seed, each question's place there, with its answer."""

from __future__ import annotations

import csv
import hashlib
import html
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from bench import attachments_vault
from bench.attachments import Found, is_place
from bench.attachments_facts import KINDS
from bench.attachments_pages import wrap
from bench.attachments_vault import ASKED, FILE_PAGES, Made, Question, generate, write_pages
from lithos.core.attachments.drawing import read_drawing
from lithos.core.attachments.reading import read_canvas

#: A change here makes measurements before and after it incomparable.
KNOWN_HASH = "f2d7dc212e3c875e6dab1713f4effaea4b3c486b7c5d6fc59a7a7d962f44169a"
QUESTION = Question("a1", "notice", "words", "columns", "a.pdf", "2", "90 days")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attachments")


@pytest.fixture(scope="module")
def made(folder: Path) -> Made:
    return generate(folder, seed=7)


def test_a_seed_names_one_vault_for_good(made: Made, tmp_path: Path) -> None:
    """The texts; bytes of PDF files depend on the zlib as well."""
    told = [[path, place, text] for (path, place), text in made.texts.items()]
    asked = [[each.id, each.text, each.path, each.place] for each in made.questions]
    assert hashlib.sha256(json.dumps([told, asked]).encode()).hexdigest() == KNOWN_HASH
    other = generate(tmp_path, seed=8)
    assert {each.text for each in other.questions} != {each.text for each in made.questions}


def test_the_same_seed_writes_the_same_files(folder: Path, made: Made, tmp_path: Path) -> None:
    generate(tmp_path, seed=7)
    files = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert [path for path in files if (tmp_path / path).read_bytes() != (folder / path).read_bytes()] == []
    assert {path.as_posix() for path in files} > set(made.layouts)


def test_there_are_three_hundred_pages_in_five_layouts(made: Made) -> None:
    places = made.places()
    pdf = {layout: places[layout] for layout in ("columns", "tables", "framed", "scanned", "leftwards")}
    assert set(pdf.values()) == {sum(FILE_PAGES)} == {60}
    pages = Counter(path for path, _ in made.texts if path.endswith(".pdf"))
    assert (min(pages.values()), max(pages.values())) == (5, 20)
    files = Counter(made.layouts.values())
    assert (files["canvas"], files["drawing"], files["lines"]) == (20, 20, 12)
    assert not any(text for (path, _), text in made.texts.items() if made.layouts[path] == "scanned")


def test_each_layout_is_asked_in_three_ways(made: Made) -> None:
    counts = Counter((each.layout, each.kind) for each in made.questions)
    assert counts == {(layout, kind): count for layout, count in ASKED.items() for kind in KINDS}
    assert len(made.questions) >= 150
    assert len({(each.path, each.place) for each in made.questions}) == len(made.questions)


def test_each_answer_stands_at_its_place(made: Made) -> None:
    assert [each for each in made.questions if each.answer not in made.texts[each.path, each.place]] == []


def test_no_question_quotes_the_text(made: Made) -> None:
    """Not more than six words in a row of it, headings with a site's name among them."""
    for each in made.questions:
        words, text = each.text.split(), made.texts[each.path, each.place]
        runs = (" ".join(words[at : at + 7]) for at in range(len(words) - 6))
        assert not any(run in text for run in runs), each


def test_a_question_has_no_second_answer(made: Made) -> None:
    """Codes are given once; what a question by words is about is named there alone."""
    codes = Counter(
        code for text in made.texts.values() for code in set(re.findall(r"\b[A-Z]{2}-\d{4}\b", text))
    )
    asked = [code for each in made.questions for code in re.findall(r"\b[A-Z]{2}-\d{4}\b", each.text)]
    assert len(asked) > 20
    assert {codes[code] for code in asked} == {1}
    assert len({each.text for each in made.questions}) == len(made.questions)


def test_boards_say_what_was_written(folder: Path, made: Made) -> None:
    forms = Counter()
    for path, layout in made.layouts.items():
        if layout not in ("canvas", "drawing"):
            continue
        data = (folder / path).read_bytes()
        parts = read_canvas(data) if layout == "canvas" else read_drawing(path, data)
        said = {part.place: part.text for part in parts}
        wanted = {place: text for (file, place), text in made.texts.items() if file == path}
        assert said.items() >= wanted.items()
        forms[b"compressed-json" in data, path.endswith(".md")] += 1
    assert set(forms) == {(False, False), (False, True), (True, True)}


def test_lines_stand_where_they_are_said_to(folder: Path, made: Made) -> None:
    for (path, place), text in made.texts.items():
        if path.endswith(".csv"):
            row = (folder / path).read_text().splitlines()[int(place) - 1]
            assert " ".join(next(csv.reader([row]))) == text
        elif made.layouts[path] == "lines":
            line = (folder / path).read_text().splitlines()[int(place) - 1]
            assert line in (text, f"<p>{html.escape(text)}</p>")


def test_pages_say_what_was_written(folder: Path, made: Made) -> None:
    """As far as it is not right to left, where a library orders numbers and names in its own way."""
    pdfium = pytest.importorskip("pypdfium2")
    for path, layout in made.layouts.items():
        if layout not in ("columns", "tables", "framed", "leftwards"):
            continue
        document = pdfium.PdfDocument(folder / path)
        for number, page in enumerate(document, 1):
            said = _words(page.get_textpage().get_text_range())
            wanted = _words(made.texts[path, str(number)])
            missing = wanted - said
            assert len(missing) <= (len(wanted) // 8 if layout == "leftwards" else 0), (path, number)


def _words(text: str) -> set[str]:
    joined = re.sub("[\x02\ufffe-]\r?\n?(?=[a-z])", "", text)
    return set(re.findall(r"\w+", joined))


def test_notes_embed_files_that_are_there(folder: Path, made: Made) -> None:
    names = {path.rsplit("/", 1)[-1] for path in made.layouts}
    embedded = [
        name
        for path in folder.joinpath("Notes").glob("*.md")
        for name in re.findall(r"!\[\[([^#\]]+)(?:#page=2)?\]\]", path.read_text())
    ]
    assert len(embedded) > 30
    assert set(embedded) <= names
    assert made.notes == len(list(folder.rglob("*.md")))


def test_a_set_of_pages_has_as_many_as_were_asked_for(tmp_path: Path) -> None:
    pdfium = pytest.importorskip("pypdfium2")
    paths = write_pages(tmp_path, 45)
    documents = [pdfium.PdfDocument(path) for path in paths]
    assert [len(document) for document in documents] == [20, 20, 5]
    assert all(len(page.get_textpage().get_text_range()) > 500 for each in documents for page in each)


def test_words_are_cut_only_where_they_are_to_be() -> None:
    text = "a remarkably unremarkable KX-4471 commissioning"
    assert wrap(text, 80, 10) == ["a remarkably", "unremarkable", "KX-4471", "commissioning"]
    cut = wrap(text, 80, 10, cuts=True)
    assert max(map(len, cut)) <= 16
    assert "KX-4471" in " ".join(cut)
    assert "".join(cut).replace("-", "").replace(" ", "") == text.replace("-", "").replace(" ", "")


def test_places_of_rows_are_compared_by_layout() -> None:
    assert is_place("2", QUESTION)
    assert not is_place("1", QUESTION)
    lines = Question("a2", "notice", "words", "lines", "a.txt", "45", "90 days")
    assert is_place("45", lines)
    assert is_place("6:300", lines)
    assert not is_place("46", lines)
    assert not is_place("5", lines)


def test_an_answer_is_found_where_its_row_stands() -> None:
    rows = [
        {"id": "n", "path": "b.md"},
        {"id": "att_1", "kind": "attachment", "path": "a.pdf", "place": "7"},
        {"id": "att_1", "kind": "attachment", "path": "a.pdf", "place": "2"},
    ]
    assert Found.among(rows, QUESTION) == Found(3, 2)
    assert Found.among(rows[:1], QUESTION) == Found(None, None)


def test_the_command_tells_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attachments_vault.main([str(tmp_path), "--notes", "5"])
    told = json.loads(capsys.readouterr().out)
    assert told["notes"] == len(list(tmp_path.rglob("*.md")))
    assert told["places"]["columns"] == 60
