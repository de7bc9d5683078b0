"""The text of the notes of `bench/vault.py`: frontmatter, blocks and links as people write them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, timedelta
from functools import cached_property
from posixpath import relpath
from urllib.parse import quote

from attrs import frozen

from bench.corpus import AUTHORS, HEADINGS, topic_words, vocabulary_of

LONG_CHARACTERS = 400_000
LINKS = 6_000
#: Lines that make frontmatter unreadable, as they are found in the wild.
BROKEN_LINES = (
    "title: Deploy: the second try",
    "tags: [alpha, beta",
    'summary: "never closed',
    "author: @maria",
    "status: done: really",
    "aliases: - one",
    "related: [[One]], [[Two]]",
    "description: %TODO",  # no YAML: a value may not begin with %
    "\tindented: by a tab",
    "url: `https://example.org`",
    "rating: *****",
    "date: {{date}}",
    "cover: ![[picture.png]]",
    "who: {name: kenji",
    "quote: 'it's late'",
)
CALLOUTS = ("note", "warning", "tip", "info", "quote", "todo", "example", "bug")
STATUSES = ("seed", "growing", "evergreen", "done")
BLOCKS = ("callout", "tasks", "dataview", "table", "code", "math", "quote", "fields", "comment", "footnote")


@frozen
class Place:
    """Where a note stands: `kind` is note, daily, zettel or repeated."""

    index: int
    topic: str
    folder: str
    name: str
    kind: str

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}.md"


class Writer:
    """Writes one note with a random stream of its own."""

    def __init__(self, place: Place, others: Sequence[Place], attachments: Sequence[str], seed: int) -> None:
        self.place = place
        self.others = others
        self.attachments = attachments
        self.rng = random.Random(f"vault note {seed} {place.index}")

    @cached_property
    def _words(self) -> Sequence[str]:
        return topic_words(self.rng, self.place.topic, 3)

    def _chance(self, share: float) -> bool:
        return self.rng.random() < share

    def _pick(self, among: Sequence[str]) -> str:
        return self.rng.choices(among)[0]

    def _count(self, least: int, most: int) -> int:
        return self.rng.choices(range(least, most + 1))[0]

    def note(self, broken_line: str | None = None) -> str:
        """The note's text; `broken_line` is a line of frontmatter that is no YAML."""
        if broken_line is None and self._chance(0.006):
            return ""  # made by following a link, and never written
        parts = [*self._lead(), self._paragraph()]
        for heading in dict.fromkeys(self.rng.choices(HEADINGS, k=self._count(0, 4))):
            parts += [f"{'#' * self._count(2, 3)} {heading}", self._paragraph(), *self._blocks()]
        if self._chance(0.5):
            parts.append(" ".join(self._inline_tags()))
        text = self._frontmatter(broken_line) + "\n\n".join(parts)
        return self._as_saved(text)

    def long(self, characters: int) -> str:
        """A note of exactly that many characters: a log that nobody ever split."""
        parts = [self._frontmatter(None)]
        length, number = len(parts[0]), 0
        while length < characters:
            number += 1
            section = f"## Entry {number}\n\n{self._paragraph()}\n\n{self._paragraph()}\n\n"
            parts.append(section)
            length += len(section)
        return "".join(parts)[: characters - 1] + "\n"

    def linking(self, links: int) -> str:
        """A map of content: that many links, each on a line of its own, to notes again and again."""
        lines = ["%% made by a script %%", ""]
        count = len(self.others)
        for number in range(links):
            other = self.others[number * 7 % count]
            lines.append(f"- {self._link(other, plain=number % 10 != 0)}")
        return "\n".join(lines) + "\n"

    def _as_saved(self, text: str) -> str:
        """As editors leave it: some with CRLF, with a byte order mark, without a final newline."""
        text += "" if self._chance(0.1) else "\n"
        if self._chance(0.02):
            text = text.replace("\n", "\r\n")
        return ("\ufeff" if self._chance(0.005) else "") + text

    # Frontmatter

    def _frontmatter(self, broken_line: str | None) -> str:
        """None on a third of the notes; no `id` ever, since no program but Lithos writes one."""
        if broken_line is None and self._chance(0.33):
            return ""
        lines = [line for line in (self._tag_line(), self._alias_line(), *self._properties()) if line]
        if broken_line is not None:
            lines.insert(len(lines) // 2, broken_line)
        return (
            "---\n" + "".join(f"{line}\n" for line in lines) + "---\n" + ("\n" if self._chance(0.5) else "")
        )

    def _tag_line(self) -> str:
        first, second, _ = self._words
        nested = f"project/{self.place.topic}"
        forms = (
            f"tags: [{first}, {nested}]",
            f"tags:\n  - {first}\n  - {nested}",
            f"tags:\n- {first}\n- {second}",
            f"tags: {first}, {second}",
            f"tag: {first}",
            "tags:",
            f'tags: ["#{first}"]',
        )
        return "" if self._chance(0.2) else self._pick(forms)

    def _alias_line(self) -> str:
        first, second, third = self._words
        forms = (
            f"aliases: [{third} {self.place.index}]",
            f"aliases:\n  - {second} {first} {self.place.index}\n  - {third}",
            f"alias: {third} no. {self.place.index}",
        )
        return self._pick(forms) if self._chance(0.25) else ""

    def _properties(self) -> list[str]:
        day = self._day()
        lines = (
            (0.5, f"created: {day}"),
            (0.2, f"updated: {day}T09:30"),
            (0.3, f"status: {self._pick(STATUSES)}"),
            (0.2, f'up: "[[{self.rng.choices(self.others)[0].name}]]"' if self.others else ""),
            (0.15, "done: true"),
            (0.1, "cssclasses: [wide]"),
            (0.1, f"rating: {self._count(1, 5)}"),
            (0.1, f"author: {self._pick(AUTHORS)}"),
            (0.1, f"source: https://example.org/{self.place.topic}/{self.place.index}"),
            (0.05, f"title: {self._words[0].capitalize()} in short {self.place.index}"),
            (0.05, "# a comment of the owner"),
        )
        return [line for share, line in lines if line and self._chance(share)]

    def _day(self) -> str:
        return (date(2023, 1, 1) + timedelta(days=self._count(0, 900))).isoformat()

    # Body

    def _lead(self) -> list[str]:
        """What stands on top: a heading on half of the notes, badges, pictures and comments on some."""
        parts = []
        if self.place.kind == "daily":
            day = date.fromisoformat(self.place.name)
            before, after = day - timedelta(days=1), day + timedelta(days=1)
            parts.append(f"<< [[{before}]] | [[{after}|tomorrow]] >>")
        elif self._chance(0.5):
            parts.append(f"# {self._heading()}")
        tops = (
            (0.08, "[![Build](https://img.example.org/b.svg)](https://ci.example.org/b) ![Stars](https://img.example.org/s.svg)"),
            (0.08, f"![[{self._attachment()}|300]]"),
            (0.05, f"![cover]({quote(relpath(self._pick(self.attachments), self.place.folder))})"),
            (0.05, "<!-- reviewed by the team: hiddenword -->"),
            (0.05, "%% hiddenword, not yet for others %%"),
            (0.03, "%%\nhiddenword of a block\nof two lines\n%%"),
        )  # fmt: skip
        parts += [top for share, top in tops if self._chance(share)]
        return parts

    def _heading(self) -> str:
        first, second, _ = self._words
        forms = (
            self.place.name,
            self.place.name,
            f"{first.capitalize()}, **once more**",
            f"[[{second}|{second.capitalize()}]] notes",
            f"`{first}` and #{second}",
            f"[{first.capitalize()}](https://example.org/{first})",
        )
        return self._pick(forms)

    def _paragraph(self) -> str:
        sentences = [self._sentence() for _ in range(self._count(2, 5))]
        for _ in range(self._count(0, 2)):
            sentences.insert(
                self._count(0, len(sentences)), f"See {self._link(self.rng.choices(self.others)[0])}."
            )
        if self._chance(0.05):
            sentences.append(f"Never written: [[{self._words[0]} that is missing]].")
        text = " ".join(sentences)
        return f"{text} ^b{self.place.index}" if self._chance(0.04) else text

    def _sentence(self) -> str:
        words = vocabulary_of(self.place.topic).draw(self.rng, self._count(6, 16))
        if self._chance(0.1):
            words[2] = self._pick((f"**{words[2]}**", f"=={words[2]}==", f"`{words[2]}`", f"*{words[2]}*"))
        return (words[0].capitalize() + " " + " ".join(words[1:])) + "."

    def _link(self, other: Place, *, plain: bool = False) -> str:
        """A link to another note; one whose name others have is named with its folder."""
        name = f"{other.folder}/{other.name}" if other.kind == "repeated" else other.name
        relative = quote(relpath(other.path, self.place.folder))
        forms = (
            f"[[{name}]]",
            f"[[{name}|{self._words[1]}]]",
            f"[[{name}#Results]]",
            f"[{self._words[2]}]({relative})",
            f"[there](<{relpath(other.path, self.place.folder)}>)",
            f"[part]({relative}#results)",
            f"![[{name}]]",
            f"[[{name}#^b{other.index}|that line]]",
        )
        weights = (12, 15, 17, 20, 21, 22, 24, 25)
        return forms[0] if plain else self.rng.choices(forms, cum_weights=weights)[0]

    def _attachment(self) -> str:
        """As Obsidian writes it: the file name alone."""
        return self._pick(self.attachments).rsplit("/", 1)[-1]

    def _inline_tags(self) -> list[str]:
        first, second, _ = self._words
        topic = self.place.topic
        tags = (
            f"#{first}",
            f"#{second}",
            f"#project/{topic}",
            f"#project/{topic}/{first}",
            "#2024",
            "#y2024",
            "#Idee_ü",
        )
        return list(dict.fromkeys(self.rng.choices(tags, k=self._count(1, 4))))

    def _blocks(self) -> list[str]:
        kinds = self.rng.choices(BLOCKS, k=self._count(0, 2))
        return [getattr(self, f"_{kind}")() for kind in dict.fromkeys(kinds)]

    def _callout(self) -> str:
        fold = self._pick(("", "", "-", "+"))
        lines = (f"[!{self._pick(CALLOUTS)}]{fold} {self._words[0].capitalize()}", self._sentence(), "- once")
        return "\n".join(f"> {line}" for line in lines)

    def _tasks(self) -> str:
        marks = (" ", "x", " ", "-")
        return "\n".join(
            f"{'  ' if number == 2 else ''}- [{self._pick(marks)}] {self._sentence()} #task 📅 {self._day()}"
            for number in range(self._count(1, 4))
        )

    def _dataview(self) -> str:
        return (
            f"```dataview\nTABLE status, file.mtime AS changed\nFROM #project/{self.place.topic} AND "
            f'"{self.place.folder}"\nWHERE status != "done"\nSORT file.name ASC\n```\n\n`= this.status`'
        )

    def _table(self) -> str:
        first, second, third = self._words
        rows = (
            f"{first} | {second}",
            "---|---:",
            f"{third} | {self._count(1, 99)}",
            f"[[{first}\\|{second}]] | 3",
        )
        return "\n".join(f"| {row} |" for row in rows)

    def _code(self) -> str:
        first, second, third = self._words
        return f"```sh\n# not a #tag, not a [[link]]\n{first} --{second} # {third}\n```"

    def _math(self) -> str:
        return f"$$\n{self._words[0]} = \\sum_{{i}} x_i^2 \\# 3\n$$"

    def _quote(self) -> str:
        return f"> {self._sentence()}\n>\n> — {self._pick(AUTHORS)}, https://example.org/page#section-{self.place.index}"

    def _fields(self) -> str:
        return f"due:: {self._day()}\n[priority:: {self._count(1, 3)}] {self._sentence()}"

    def _comment(self) -> str:
        return self._pick((f"%% hiddenword {self._words[0]} %%", f"<!--\nhiddenword {self._words[1]}\n-->"))

    def _footnote(self) -> str:
        return f"{self._sentence()}[^1]\n\n[^1]: {self._sentence()}"
