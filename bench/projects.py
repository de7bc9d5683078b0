"""Notes of software projects, generated with the answers known: long notes, many copies, many that sound
alike.

Every project has the same kinds of notes: a runbook and an architecture with a section for each component,
decisions, and weekly notes. A fact ("the retry limit of the ingest worker is 7") stands in one sentence of
one section. Around it is talk about the same component and the same matter without the value, the other
projects have components of the same names with other values, and weekly notes copy paragraphs of the runbook,
with and without the sentence that tells the fact (who copies it, gives the answer too).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from attrs import frozen

PROJECTS = (
    "Heron", "Basalt", "Juniper", "Meridian", "Osprey", "Quartz", "Saffron", "Tundra", "Umber", "Vesper",
    "Willow", "Yarrow", "Zephyr", "Alder", "Bracken", "Cobalt", "Drift", "Ember", "Fathom", "Garnet",
)  # fmt: skip
COMPONENTS = (
    "ingest worker", "billing service", "search gateway", "session store", "export job", "mail relay",
    "audit collector", "image resizer", "rate limiter", "report builder",
)  # fmt: skip
COMPONENTS_EACH = 7
WEEKS = 5
#: Facts of a component; the rest of the matters is talked about without a value.
FACTS_EACH = 4
#: Probability that a weekly note copies the sentence of a fact with its paragraph.
COPIED = 0.3


@frozen
class Matter:
    """Something a component has a value for: how it is told, asked, and talked about."""

    name: str
    told: tuple[str, ...]
    asked: tuple[str, ...]
    talk: tuple[str, ...]
    values: tuple[str, ...]


@frozen
class Fact:
    """A question, and the sentence that answers it."""

    id: str
    question: str
    sentence: str


@frozen
class ProjectNote:
    """A generated note; `text` without its title."""

    path: str
    title: str
    text: str


_NUMBERS = tuple(str(number) for number in (3, 5, 7, 9, 11, 13, 17, 21, 34, 40, 55, 80))
MATTERS = (
    Matter(
        "retries",
        ("The {c} gives up after {v} attempts.", "A failed item is tried {v} times by the {c}."),
        ("how many retries does the {p} {c} make", "when does the {c} of {p} stop trying again"),
        ("Retries of the {c} were discussed again, without a result.",
         "An attempt of the {c} that fails is logged with its reason."),
        _NUMBERS,
    ),
    Matter(
        "timeout",
        ("Requests to the {c} time out after {v} seconds.", "The {c} waits {v} seconds for an answer."),
        ("what is the timeout of the {c} in {p}", "how long does the {p} {c} wait before it gives up"),
        ("Timeouts of the {c} are seen mostly at night.",
         "The {c} logs each request that takes longer than usual."),
        _NUMBERS,
    ),
    Matter(
        "owner",
        ("{v} owns the {c} and answers questions about it.", "Ask {v} before you change the {c}."),
        ("who is responsible for the {p} {c}", "who owns the {c} of {p}"),
        ("Ownership of the {c} came up in the review.", "Questions about the {c} go to the channel first."),
        ("Priya", "Tomas", "Ingrid", "Kwame", "Mei", "Rafael", "Sana", "Viktor", "Noor", "Elif"),
    ),
    Matter(
        "storage",
        ("The {c} keeps its state in {v}.", "Everything the {c} has to remember goes to {v}."),
        ("where does the {p} {c} store its data", "which database is behind the {c} of {p}"),
        ("The state of the {c} has to survive a restart.", "Storage of the {c} grows by a tenth each month."),
        ("SQLite", "PostgreSQL", "Redis", "DynamoDB", "FoundationDB", "flat files on NFS", "RocksDB"),
    ),
    Matter(
        "schedule",
        ("The {c} runs every day at {v}.", "A cron entry starts the {c} at {v}."),
        ("at what time is the {p} {c} started", "when does the {c} of {p} run"),
        ("The {c} must not overlap with the backup.", "A run of the {c} takes longer on Mondays."),
        ("02:15", "03:40", "04:05", "05:30", "21:45", "22:10", "23:20"),
    ),
    Matter(
        "rollback",
        ("To roll the {c} back, {v}.", "If a release of the {c} goes wrong, {v}."),
        ("how do I undo a bad release of the {p} {c}", "what is the rollback procedure for the {c} in {p}"),
        ("The last release of the {c} went well.", "Releases of the {c} happen on Tuesdays."),
        ("repoint the alias and drain the old pods", "restore the snapshot of the day before",
         "flip the feature flag and restart it", "run the down migration, then deploy the former tag",
         "pin the previous image and clear its cache"),
    ),
    Matter(
        "limit",
        ("The {c} takes at most {v} requests a second.", "Above {v} requests a second the {c} refuses."),
        ("what load can the {p} {c} take", "how many requests per second does the {c} of {p} accept"),
        ("Load on the {c} has been even.", "The {c} refuses what it cannot handle."),
        ("120", "250", "400", "650", "900", "1,400", "2,500"),
    ),
)  # fmt: skip

_FILLER = (
    "The {c} was split from the monolith two years ago, and some names in its code still say so.",
    "Dashboards of the {c} are linked from the start page; the second panel is the one to look at.",
    "Most incidents with the {c} came from changes in what calls it, not from the {c} itself.",
    "Its configuration is rendered from templates, so do not edit the file on the machine.",
    "New people should read the {c} section first and then follow one request through the logs.",
    "We agreed to revisit this after the next planning round.",
    "The numbers on the old wiki page about the {c} are out of date and should not be used.",
    "A staging copy exists; it has a tenth of the data and none of the alerts.",
    "The team looked at alternatives and found none that was worth the move.",
    "Alerts page the person on call, who may wake the owner when the first steps do not help.",
)
_DECIDED = (
    "We talked about the {c} of {p} for an hour. Nobody was against keeping it as it is.",
    "A proposal to merge the {c} into its neighbour was put off until there is a measurement.",
    "The naming of things in the {c} was settled; the old names stay as aliases for a year.",
)


def generate_projects(seed: int = 7) -> tuple[list[ProjectNote], list[Fact]]:
    """The notes and the questions, each with the sentence that has to be shown."""
    notes: list[ProjectNote] = []
    facts: list[Fact] = []
    taken: set[str] = set()
    for project in PROJECTS:
        made, known = _Project(project, random.Random(f"{seed}:{project}"), taken).make()
        notes += made
        facts += known
    return notes, facts


class _Project:
    def __init__(self, name: str, rng: random.Random, taken: set[str]) -> None:
        """`taken`: sentences of all projects so far; each answers one question only."""
        self.name = name
        self.taken = taken
        self.rng = rng
        self.components = rng.sample(COMPONENTS, COMPONENTS_EACH)
        self.facts: list[Fact] = []
        #: Paragraphs of the runbook, with the sentence of a fact where there is one.
        self.paragraphs: list[tuple[str, str | None]] = []

    def make(self) -> tuple[list[ProjectNote], list[Fact]]:
        told = {component: self.rng.sample(MATTERS, FACTS_EACH) for component in self.components}
        books = {"runbook": "", "architecture": ""}
        for component in self.components:
            for book in books:
                books[book] += (
                    f"## {component.capitalize()}\n\n{self._section(component, told[component], book)}\n\n"
                )
        folder = self.name.lower()
        notes = [
            ProjectNote(f"{folder}/{book}.md", f"{self.name} {book}", text) for book, text in books.items()
        ]
        notes.append(ProjectNote(f"{folder}/decisions.md", f"{self.name} decisions", self._decisions()))
        notes += [
            ProjectNote(f"{folder}/week-{week}.md", f"{self.name} week {week}", self._week())
            for week in range(1, WEEKS + 1)
        ]
        return notes, self.facts

    def _section(self, component: str, matters: Sequence[Matter], book: str) -> str:
        """Runbooks tell the first two facts of a component, architectures the others."""
        half = len(matters) // 2
        mine = matters[:half] if book == "runbook" else matters[half:]
        paragraphs = []
        for matter in self.rng.sample(MATTERS, 4):
            sentences = [self._fill(self.rng.choice(_FILLER), component) for _ in range(3)]
            sentences.append(self._fill(self.rng.choice(matter.talk), component))
            self.rng.shuffle(sentences)
            paragraphs.append(sentences)
        sentences_of = dict(zip(mine, self.rng.sample(paragraphs, len(mine)), strict=True))
        for matter, sentences in sentences_of.items():
            told = [self._fill(each, component, value) for each in matter.told for value in matter.values]
            free = [each for each in told if each not in self.taken]
            if not free:
                continue
            sentence = self.rng.choice(free)
            self.taken.add(sentence)
            sentences.insert(self.rng.randrange(len(sentences) + 1), sentence)
            question = self._fill(self.rng.choice(matter.asked), component)
            self.facts.append(
                Fact(f"{self.name}-{component}-{matter.name}".replace(" ", "-"), question, sentence)
            )
            self.paragraphs.append((" ".join(sentences), sentence))
        self.paragraphs += [
            (" ".join(some), None) for some in paragraphs if some not in sentences_of.values()
        ]
        return "\n\n".join(" ".join(sentences) for sentences in paragraphs)

    def _decisions(self) -> str:
        parts = []
        for component in self.components:
            talk = [
                self._fill(self.rng.choice(matter.talk), component) for matter in self.rng.sample(MATTERS, 3)
            ]
            decided = self._fill(self.rng.choice(_DECIDED), component)
            parts.append(f"## On the {component}\n\n{decided} {' '.join(talk)}")
        return "\n\n".join(parts)

    def _week(self) -> str:
        parts = []
        for number in range(8):
            paragraph, sentence = self.rng.choice(self.paragraphs)
            if sentence is not None and self.rng.random() > COPIED:
                paragraph = paragraph.replace(sentence, "(See there.)")
            parts.append(f"### Topic {number + 1}\n\n{paragraph}")
        return "\n\n".join(parts)

    def _fill(self, template: str, component: str, value: str = "") -> str:
        text = template.format(c=component, p=self.name, v=value)
        return text[0].upper() + text[1:]
