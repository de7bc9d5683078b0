"""A corpus of realistic Markdown notes, generated from a seed, and search queries with the same vocabulary.

`python -m bench.corpus DIR --notes 10000 --seed 7` writes about 2 KB per note. All random numbers come from
`random.Random.choices`. It returns the same sequence on every Python version, so a seed always gives the same
corpus.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate
from pathlib import Path
from zlib import crc32

from attrs import frozen

from bench.words import COMMON, PREFIXES, ROOTS, SUFFIXES, TOPICS

AUTHORS = (
    "agent-scout", "agent-writer", "planner", "reviewer", "maria", "kenji", "research-bot", "ops-agent",
)  # fmt: skip
KINDS = ("observation", "agent_finding", "summary", "concept", "hypothesis", "task_record")
HEADINGS = (
    "Background", "Findings", "Open questions", "Method", "Results", "Next steps", "Details", "Decision",
    "Risks", "References", "Timeline", "Examples", "Constraints", "Summary",
)  # fmt: skip
CODE = (
    "def {a}({b}: int) -> int:\n    return {b} + 1",
    "curl -s http://localhost:8080/{a}/{b} | head",
    "{a}:\n  {b}: true\n  limit: 20",
    "SELECT {a}, count(*) FROM {b} GROUP BY {a};",
)
FORMS = (
    "{a}", "{a} {b}", "{a} {b} {c}", "{a} {t}", '"{w} {a}"', "how to {w} {a} without {b}", "{a} and {b}",
)  # fmt: skip
LANGUAGES = ("python", "sh", "yaml", "sql")
NAMESPACE = uuid.UUID("5f0f6a2e-6f0b-4b5e-9a53-6d1c3b1d1a10")
EPOCH = datetime(2025, 1, 1, tzinfo=UTC)


@frozen
class Vocabulary:
    """The words, most likely word first, and the cumulative sums of their Zipf weights."""

    words: tuple[str, ...]
    sums: tuple[float, ...]

    def draw(self, rng: random.Random, count: int) -> list[str]:
        return rng.choices(self.words, cum_weights=self.sums, k=count)


@cache
def vocabulary_of(topic: str) -> Vocabulary:
    """Return a vocabulary: mostly function words, one sixth topic words, and a tail of rare words."""
    common = COMMON.split()
    others = [word for other in TOPICS if other != topic for word in TOPICS[other].split()]
    groups = (
        (common[:40], 0.42),
        (common[40:], 0.24),
        (TOPICS[topic].split(), 0.17),
        (_mix(others), 0.05),
        (_rare_words(), 0.12),
    )
    shares: dict[str, float] = {}
    for words, share in groups:
        weights = [1 / (rank + 3) for rank in range(len(words))]
        total = math.fsum(weights)  # fsum rounds in the same way on every Python version, unlike sum
        for word, weight in zip(words, weights, strict=True):
            shares.setdefault(word, share * weight / total)
    return Vocabulary(tuple(shares), tuple(accumulate(shares.values())))


@cache
def _rare_words() -> tuple[str, ...]:
    """Return thousands of invented words that resemble English, in a fixed order."""
    made = [
        prefix + (root[:-1] if suffix[:1] in tuple("aeiou") and root.endswith("e") else root) + suffix
        for prefix in PREFIXES.split()
        for root in ROOTS.split()
        for suffix in SUFFIXES
    ]
    return tuple(_mix(made))


def _mix(words: Iterable[str]) -> list[str]:
    return sorted(set(words), key=lambda word: (crc32(word.encode()), word))


def topic_words(rng: random.Random, topic: str, count: int) -> list[str]:
    """Return the distinct words of a topic."""
    words = TOPICS[topic].split()
    return list(dict.fromkeys([*rng.choices(words, k=2 * count), *words]))[:count]


@frozen
class Place:
    """The path and title of a note.

    Path and title are known before the text of the note, so that other notes can link to the note.
    """

    index: int
    topic: str
    title: str

    @property
    def path(self) -> Path:
        """The path of the note, relative to the corpus. One third of the notes are one folder deeper."""
        name = f"{self.title.lower().replace(' ', '-')}.md"
        folder = Path(self.topic)
        return folder / f"part-{self.index % 7}" / name if self.index % 3 == 0 else folder / name


def places(notes: int, seed: int) -> list[Place]:
    """Return the places of all notes in a corpus. Numbers make the titles unique."""
    rng = random.Random(f"places {seed}")
    topics = rng.choices(tuple(TOPICS), k=notes)
    return [Place(index, topic, _title(rng, topic, index)) for index, topic in enumerate(topics)]


def _title(rng: random.Random, topic: str, index: int) -> str:
    first, second = topic_words(rng, topic, 2)
    (link,) = rng.choices(("and", "of the", "without", "under", "for", "after"))
    return f"{first.capitalize()} {link} {second} {index}"


def generate(directory: Path, notes: int, *, seed: int = 7, links_per_note: int = 4) -> None:
    """Write `notes` files of about 2 KB each below `directory`, with one folder per topic.

    `links_per_note` is the mean number of wiki-links to other notes of the corpus. Equal arguments give equal
    bytes. Existing files with the same names are overwritten. No other file is changed.
    """
    all_places = places(notes, seed)
    for folder in sorted({place.path.parent for place in all_places}):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    for place in all_places:
        text = _Author(place, all_places, seed, links_per_note).write()
        (directory / place.path).write_bytes(text.encode())


class _Author:
    """The writer of one note, which has its own random stream."""

    def __init__(self, place: Place, others: Sequence[Place], seed: int, links: int) -> None:
        self.place = place
        self.others = others
        self.rng = random.Random(f"note {seed} {place.index}")
        self.vocabulary = vocabulary_of(place.topic)
        self.links = self.rng.choices(range(2 * links + 1))[0]

    def write(self) -> str:
        sections = self.pick((2, 3, 4))
        headings = list(dict.fromkeys(self.rng.choices(HEADINGS, k=sections + 3)))[:sections]
        body = [f"# {self.place.title}", self.paragraph(4)]
        for position, heading in enumerate(headings):
            body += [f"## {heading}", *(self.paragraph(4) for _ in range(self.pick((1, 1, 2))))]
            if self.chance(0.12):
                body.append(self.code())
            body += self.see_also(position, len(headings))
        return self.frontmatter() + "\n\n".join(body) + "\n"

    def pick(self, among: Sequence[int]) -> int:
        return self.rng.choices(among)[0]

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def frontmatter(self) -> str:
        """Return frontmatter for nine of ten notes, mostly with extra keys. Return "" for the rest."""
        if self.chance(0.1):
            return ""
        tags = dict.fromkeys([self.place.topic, *topic_words(self.rng, self.place.topic, 2)])
        created = EPOCH + timedelta(minutes=self.pick(range(500_000)))
        lines = [
            f"id: {uuid.uuid5(NAMESPACE, self.place.title)}",
            f"title: {self.place.title}",
            f"author: {self.rng.choices(AUTHORS)[0]}",
            f"created_at: {created.isoformat(timespec='microseconds')}",
            f"tags: [{', '.join(tags)}]",
            f"note_type: {self.rng.choices(KINDS)[0]}",
        ]
        if self.chance(0.7):
            lines += [f"priority: {self.pick(range(1, 6))}", "review:", f"  cycle: {self.pick((30, 90))}"]
        if self.chance(0.2):
            lines.append(f"source_url: https://example.org/{self.place.topic}/{self.place.index}")
        return "---\n" + "\n".join(lines) + "\n---\n\n"

    def paragraph(self, sentences: int) -> str:
        return " ".join(self.sentence() for _ in range(self.pick((sentences - 1, sentences, sentences + 1))))

    def sentence(self) -> str:
        words = self.vocabulary.draw(self.rng, self.pick(range(7, 19)))
        if len(words) > 12:
            words[6] += ","
        return " ".join(words).capitalize() + "."

    def code(self) -> str:
        kind = self.pick(range(len(CODE)))
        first, second = topic_words(self.rng, self.place.topic, 2)
        return f"```{LANGUAGES[kind]}\n{CODE[kind].format(a=first, b=second)}\n```"

    def see_also(self, section: int, sections: int) -> list[str]:
        """Return the links for one section. Some of them have an alias or a heading."""
        count = self.links * (section + 1) // sections - self.links * section // sections
        targets = [other.title for other in self.rng.choices(self.others, k=count)]
        shown = [
            f"[[{title}{self.rng.choices(('', '', '', '|see there', '#Results'))[0]}]]" for title in targets
        ]
        return ["Related: " + ", ".join(shown) + "."] if shown else []


def queries(seed: int, n: int) -> list[str]:
    """Return `n` queries as people and agents type them: topic words, text words, titles and phrases."""
    rng = random.Random(f"queries {seed}")
    return [_query(rng) for _ in range(n)]


def _query(rng: random.Random) -> str:
    (topic,) = rng.choices(tuple(TOPICS))
    first, second, third = topic_words(rng, topic, 3)
    (form,) = rng.choices(FORMS, cum_weights=(10, 40, 60, 75, 80, 90, 100))
    (word,) = rng.choices(COMMON.split()[40:])
    (rare,) = rng.choices(_rare_words()[:500])
    return form.format(a=first, b=second, c=third, t=rare, w=word)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.corpus", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--links-per-note", type=int, default=4)
    options = parser.parse_args(arguments)
    generate(options.directory, options.notes, seed=options.seed, links_per_note=options.links_per_note)
    print(f"{options.notes} notes in {options.directory}", file=sys.stderr)


if __name__ == "__main__":
    main()
