"""A seeded vault of attachments, the questions that they answer, and where each answer stands.

`python -m bench.attachments_vault DIR --seed 7` writes 300 pages of PDF in 30 files and five layouts (two
columns, tables, headers and footers, scanned without text, right to left), 20 canvases, 20 Excalidraw
drawings in three forms, 12 files of lines, and notes that embed some of them; `--notes` adds notes of
`bench.corpus`. Each page, card or line is about something of its own; others tell similar things of other
places. A question is asked by words of the text, rephrased, or by a name or number. The same seed gives the
same texts on every Python.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import define, field, frozen

from bench import corpus
from bench.attachments_boards import (
    FIRST_PARAGRAPH,
    canvas,
    drawing_note,
    identifier,
    scene,
    table_text,
    web_page,
)
from bench.attachments_facts import ARABIC, ENGLISH, HEBREW, KINDS, Fact, Language, Teller
from bench.attachments_leftwards import ARABIC as ARABIC_MATTERS
from bench.attachments_leftwards import HEBREW as HEBREW_MATTERS
from bench.attachments_pages import columns_page, framed_page, leftwards_page, scanned_page, table_page
from bench.attachments_registers import REGISTERS, Register
from bench.attachments_words import BOARD, COMPANIES, CONTRACT, PROJECTS, REPORT, SITES, Matter
from bench.pdf_writer import Page, make_pdf

#: Pages of the six PDF files of a layout.
FILE_PAGES: Final = (5, 6, 8, 9, 12, 20)
#: Questions of each kind by layout.
ASKED: Final = {
    "columns": 15,
    "tables": 15,
    "framed": 15,
    "leftwards": 16,
    "canvas": 8,
    "drawing": 8,
    "lines": 8,
}
BOARDS: Final = 20
_SIGNS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


@frozen
class Question:
    """What is asked, and the file and place (page, id of a card or element, line) that answers it.

    `answer` stands at the place as it is here; that of a table is a cell of the row.
    """

    id: str
    text: str
    kind: str
    layout: str
    path: str
    place: str
    answer: str


@frozen
class Made:
    """What a vault holds: questions, and the text written at each place of each file (none if scanned)."""

    questions: tuple[Question, ...]
    texts: Mapping[tuple[str, str], str]
    layouts: Mapping[str, str]
    notes: int

    def places(self) -> Counter[str]:
        """Places by layout."""
        return Counter(self.layouts[path] for path, _ in self.texts)


def generate(directory: Path, *, seed: int = 7, notes: int = 0) -> Made:
    """Write the vault and `notes` notes of the corpus; files of the same names are overwritten."""
    maker = _Maker(directory, Teller(random.Random(f"attachments vault {seed}")))
    maker.reports()
    maker.registers()
    maker.contracts()
    maker.scans()
    maker.leftwards("עברית", HEBREW, HEBREW_MATTERS, FILE_PAGES[::2])
    maker.leftwards("عربي", ARABIC, ARABIC_MATTERS, FILE_PAGES[1::2])
    maker.boards()
    maker.lines()
    embedding = maker.notes()
    if notes:
        corpus.generate(directory / "Wiki", notes, seed=seed)
    return Made(tuple(maker.questions()), maker.texts, maker.layouts, notes + embedding)


def write_pages(directory: Path, pages: int, *, seed: int = 7, pages_of_file: int = 20) -> list[Path]:
    """A set of PDF files with text on every page, in files of that many; their paths."""
    teller = Teller(random.Random(f"attachments pages {seed}"))
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for first in range(0, pages, pages_of_file):
        numbers = range(first, min(pages, first + pages_of_file))
        made = [_any_page(teller, number) for number in numbers]
        path = directory / f"set-{seed}-{first:05d}.pdf"
        path.write_bytes(make_pdf(made))
        written.append(path)
    return written


def _any_page(teller: Teller, number: int) -> Page:
    """A page about something; whether another one is about the same does not matter."""
    fact = teller.fact(teller.pick(REPORT), e=teller.pick(PROJECTS), s=teller.pick(SITES))
    told = _around(teller, fact.says, ENGLISH)
    if number % 2:
        return columns_page(fact.heading, told, number)
    return framed_page("Collected reports", f"Page {number}", fact.heading, told)


def _around(teller: Teller, says: str, language: Language, aside: str = "") -> list[str]:
    """Paragraphs of filler with the fact in one of them, and something similar about another in the next."""
    told = [teller.paragraph(language) for _ in range(teller.pick((5, 6, 7)))]
    place = teller.pick(range(len(told) - 1))
    told[place] = f"{says} {told[place]}" if teller.pick((True, False)) else f"{told[place]} {says}"
    told[place + 1] = f"{aside} {told[place + 1]}".strip()
    return told


@define
class _Maker:
    """Writes files, and keeps what may be asked about them."""

    directory: Path
    teller: Teller
    texts: dict[tuple[str, str], str] = field(factory=dict)
    layouts: dict[str, str] = field(factory=dict)
    #: By layout: path, place and what is asked there.
    _facts: dict[str, list[tuple[str, str, str, Mapping[str, str]]]] = field(factory=dict)
    _used: set[tuple[str, ...]] = field(factory=set)

    # PDF files

    def reports(self) -> None:
        """Two columns: reports of projects, a page for what happened at a site."""
        for project, pages in self._files(PROJECTS):
            path, made = f"Reports/Project {project}, report of the year.pdf", []
            for number in range(1, pages + 1):
                matter, site = self._unused(REPORT, SITES)
                fact = self.teller.fact(matter, e=project, s=site)
                aside = f"At the {self.teller.pick(SITES)} nothing like it was reported."
                told = _around(self.teller, fact.says, ENGLISH, aside)
                made.append(columns_page(fact.heading, told, number))
                self._tell("columns", path, str(number), "\n".join((fact.heading, *told)), fact)
            self._write_pdf(path, made, f"Project {project}")

    def registers(self) -> None:
        """Tables: a page for each thing that has a list."""
        for place, (site, pages) in enumerate(self._files(SITES)):
            register = REGISTERS[place % len(REGISTERS)]
            name = register.title.removesuffix(" of the {i}")
            path, made = f"Lists/{name}, {site}.pdf", []
            for number, item in enumerate(self.teller.shuffled(register.items)[:pages], 1):
                rows = self.teller.rows(register, site, item, self.teller.pick(range(14, 25)))
                heading = f"{register.title.format(i=item)}, {site}"
                remark = self.teller.filler()
                cells = [row.cells for row in rows]
                made.append(table_page(heading, register.columns, cells, remark))
                row = self.teller.pick(rows)
                text = "\n".join((heading, *(" ".join(one) for one in (register.columns, *cells)), remark))
                self._keep("tables", path, str(number), text, row.cells[1], row.asks)
            self._write_pdf(path, made, f"{name}, {site}")

    def contracts(self) -> None:
        """Headers and footers: contracts, a page for each clause; whose it is stands in the header alone."""
        for company, pages in self._files(COMPANIES):
            path, made = f"Contracts/{company}.pdf", []
            code, town = self.teller.code(), self.teller.pick(ENGLISH.towns)
            header = f"Framework agreement with {company} · {code} · confidential"
            for number, matter in enumerate(self.teller.shuffled(CONTRACT)[:pages], 1):
                fact = self.teller.fact(matter, e=company)
                aside = f"The agreement with {self.teller.pick(COMPANIES)} differs in this point."
                told = _around(self.teller, fact.says, ENGLISH, aside)
                heading = f"§ {number} {fact.heading}"
                footer = f"Page {number} of {pages} · {town} · signed in two copies, both of them binding"
                made.append(framed_page(header, footer, heading, told))
                self._tell("framed", path, str(number), "\n".join((header, heading, *told, footer)), fact)
            self._write_pdf(path, made, f"Framework agreement with {company}")

    def scans(self) -> None:
        """Scanned pages have no text, so nothing is asked of them."""
        for number, pages in enumerate(self.teller.shuffled(FILE_PAGES), 1):
            path = f"Scans/Scan 2024-03-{number:02d}.pdf"
            self._write_pdf(path, [scanned_page(self.teller.rng) for _ in range(pages)], "")
            for page in range(1, pages + 1):
                self._keep("scanned", path, str(page), "", "", {})

    def leftwards(
        self, folder: str, language: Language, matters: Sequence[Matter], sizes: Sequence[int]
    ) -> None:
        """Right to left: pages in which numbers and Latin names stand as well."""
        # Half of the 60 pages are of each language.
        counts = (*sizes[:-1], 30 - sum(sizes[:-1]))
        for number, pages in enumerate(counts, 1):
            path, made = f"{folder}/{language.towns[number]} {number}.pdf", []
            for page in range(1, pages + 1):
                matter, town = self._unused(matters, language.towns)
                company = self._unused((matter,), COMPANIES)[1]
                fact = self.teller.fact(matter, language, c=town, e=company)
                told = _around(self.teller, fact.says, language)
                heading = f"{fact.heading} – {town}"
                made.append(leftwards_page(heading, told, page))
                self._tell("leftwards", path, str(page), "\n".join((heading, *told)), fact)
            self._write_pdf(path, made, folder)

    def _files(self, names: Sequence[str]) -> Iterator[tuple[str, int]]:
        """A name and how many pages for each file of a layout."""
        return zip(self.teller.shuffled(names), self.teller.shuffled(FILE_PAGES), strict=False)

    # Boards and lines

    def boards(self) -> None:
        """A canvas and a drawing of each project; what one tells the other does not."""
        pdfs = [path for path, layout in self.layouts.items() if layout == "columns"]
        for number, project in enumerate(PROJECTS[:BOARDS]):
            matters = self.teller.shuffled(BOARD)
            half = len(matters) // 2
            path = f"Boards/{project} board.canvas"
            cards = self._cards("canvas", path, project, matters[:half], 16, "0123456789abcdef")
            self._write(
                path, canvas(self.teller, cards, self.teller.pick(pdfs), f"{project}, week {number + 1}")
            )
            is_plain = number % 3 == 0
            path = f"Drawings/{project} sketch.excalidraw{'' if is_plain else '.md'}"
            elements = self._cards("drawing", path, project, matters[half:], 21 if is_plain else 8, _SIGNS)
            text = scene(elements) if is_plain else drawing_note(elements, packed=number % 3 == 2)
            self._write(path, text)

    def _cards(
        self, layout: str, path: str, project: str, matters: Sequence[Matter], length: int, signs: str
    ) -> dict[str, str]:
        """Texts by id: a fact of each matter, and some that answer nothing."""
        facts: list[Fact | None] = [self.teller.fact(matter, e=project) for matter in matters]
        cards = {}
        for fact in self.teller.shuffled((*facts, *[None] * self.teller.pick((3, 4, 5)))):
            card = identifier(self.teller, length, signs)
            cards[card] = fact.says if fact else self.teller.filler()
            if fact:
                self._tell(layout, path, card, cards[card], fact)
            else:
                self._keep(layout, path, card, cards[card], "", {})
        return cards

    def lines(self) -> None:
        """Minutes, saved web pages and tables of values; the place is a line, from 1."""
        for number in range(1, 5):
            path, title = f"Texts/Minutes {number}.txt", f"Minutes of meeting {number}"
            self._write(path, "\n".join((title, "", *self._minutes(path, 3, 2), "")))
            path, title = f"Texts/Bulletin {number}.html", f"Bulletin number {number}"
            self._write(path, web_page(title, self._minutes(path, FIRST_PARAGRAPH, 1)))
            register, site = REGISTERS[number % len(REGISTERS)], SITES[-number]
            path = f"Texts/{register.title.split()[0]} {number} {site}.csv"
            self._write(path, self._values(path, register, site))

    def _minutes(self, path: str, first: int, step: int) -> list[str]:
        """Lines of some 60 paragraphs, the first one in line `first`; with step 2 an empty one between."""
        lines: list[str] = []
        for number in range(56):
            if number % 8 == 5:
                matter, site = self._unused(REPORT, SITES)
                fact = self.teller.fact(matter, e=self.teller.pick(PROJECTS), s=site)
                text = f"{fact.heading}. {fact.says}"
                self._tell("lines", path, str(first + len(lines)), text, fact)
            else:
                text = self.teller.filler()
                self._keep("lines", path, str(first + len(lines)), text, "", {})
            lines += [text] if step == 1 else [text, ""]
        return lines

    def _values(self, path: str, register: Register, site: str) -> str:
        lines: list[tuple[str, ...]] = []
        for item in self.teller.shuffled(register.items)[:8]:
            rows = self.teller.rows(register, site, item, 12)
            asked = self.teller.pick(rows)
            for row in rows:
                lines.append((site, item, *row.cells))
                place, text = str(len(lines) + 1), " ".join(lines[-1])
                asks, answer = (row.asks, row.cells[1]) if row is asked else ({}, "")
                self._keep("lines", path, place, text, answer, asks)
        return table_text(("Site", "Of", *register.columns), lines)

    # Notes, questions

    def notes(self) -> int:
        """Notes that embed half of the files, with a sentence around each; how many."""
        paths = [path for path in self.layouts if not path.startswith("Texts/")][::2]
        for number in range(0, len(paths), 2):
            lines = [f"# Papers {number // 2 + 1}"]
            for path in paths[number : number + 2]:
                page = "#page=2" if path.endswith(".pdf") and number % 4 == 0 else ""
                lines += [self.teller.filler(), f"![[{path.rsplit('/', 1)[-1]}{page}]]", self.teller.filler()]
            self._write(f"Notes/Papers {number // 2 + 1}.md", "\n\n".join(lines) + "\n")
        drawings = sum(path.endswith(".md") for path in self.layouts)
        return len(range(0, len(paths), 2)) + drawings

    def questions(self) -> Iterator[Question]:
        """As many of each kind and layout as are wanted, each about a place of its own."""
        number = 0
        for layout, count in ASKED.items():
            chosen = self.teller.shuffled(self._facts[layout])[: count * len(KINDS)]
            for place, (path, where, answer, asks) in enumerate(chosen):
                kind = KINDS[place % len(KINDS)]
                number += 1
                yield Question(f"a{number:03d}", asks[kind], kind, layout, path, where, answer)

    def _tell(self, layout: str, path: str, place: str, text: str, fact: Fact) -> None:
        self._keep(layout, path, place, text, fact.answer, fact.asks)

    def _keep(
        self, layout: str, path: str, place: str, text: str, answer: str, asks: Mapping[str, str]
    ) -> None:
        self.texts[path, place] = text
        self.layouts[path] = layout
        if asks:
            self._facts.setdefault(layout, []).append((path, place, answer, asks))

    def _unused(self, matters: Sequence[Matter], names: Sequence[str]) -> tuple[Matter, str]:
        """A matter and a name that never stood together."""
        while True:
            matter, name = self.teller.pick(matters), self.teller.pick(names)
            if (matter.heading, name) not in self._used:
                self._used.add((matter.heading, name))
                return matter, name

    def _write_pdf(self, path: str, pages: Sequence[Page], title: str) -> None:
        self._write(path, make_pdf(pages, title=title))

    def _write(self, path: str, content: str | bytes) -> None:
        target = self.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.attachments_vault", description="Write a vault of attachments."
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--notes", type=int, default=0, help="notes of the corpus beside them")
    options = parser.parse_args(arguments)
    made = generate(options.directory, seed=options.seed, notes=options.notes)
    told = {
        "files": dict(Counter(made.layouts.values())),
        "places": dict(made.places()),
        "questions": dict(Counter(question.layout for question in made.questions)),
        "notes": made.notes,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
