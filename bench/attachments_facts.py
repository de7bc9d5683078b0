"""Facts of the attachments vault: matters with their slots filled, questions about them, and filler text.

Every draw comes from `random.Random.choices`, whose sequence is the same on every Python.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Final, TypeVar

from attrs import define, field, frozen

from bench import attachments_leftwards as leftwards
from bench.attachments_registers import TELLING, Register
from bench.attachments_words import FILLERS, FIRST_NAMES, LAST_NAMES, TOWNS, Matter
from bench.corpus import vocabulary_of
from bench.dialogue_words import split
from bench.words import TOPICS

#: Ways to ask: by words of the text, by other words, by a name or number.
KINDS: Final = ("words", "rephrased", "named")
MONTHS: Final = split("January|February|March|April|May|June|July|August|September|October|November|December")
ARABIC_MONTHS: Final = split("يناير|فبراير|مارس|أبريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر")
#: A code is one of these and four digits; of one pair of letters there are many.
LETTERS: Final = split("KX|MT|RF|BL|PD|ZN|QV|HG")
_FIRST_DAY: Final = date(2021, 1, 1)
T = TypeVar("T")


@frozen
class Language:
    """What slots are filled with, and the filler text."""

    name: str
    people: tuple[str, ...]
    towns: tuple[str, ...]
    fillers: tuple[str, ...]
    money: str
    months: tuple[str, ...] = ()

    def day(self, when: date) -> str:
        if not self.months:
            return f"{when.day}.{when.month}.{when.year}"
        return f"{when.day} {self.months[when.month - 1]} {when.year}"


_PEOPLE = tuple(f"{first} {last}" for last in LAST_NAMES for first in FIRST_NAMES)
ENGLISH: Final = Language("English", _PEOPLE, TOWNS, FILLERS, "{0:,} euros", MONTHS)
HEBREW: Final = Language(
    "Hebrew", leftwards.HEBREW_PEOPLE, leftwards.HEBREW_TOWNS, leftwards.HEBREW_FILLERS, "{0:,} שקלים"
)
ARABIC: Final = Language(
    "Arabic",
    leftwards.ARABIC_PEOPLE,
    leftwards.ARABIC_TOWNS,
    leftwards.ARABIC_FILLERS,
    "{0} دينار",
    ARABIC_MONTHS,
)


@frozen
class Fact:
    """A matter of one place: heading, what is said, the answer in it, and questions by kind."""

    heading: str
    says: str
    answer: str
    asks: Mapping[str, str]


@frozen
class Row:
    """A row of a register: its cells, and the questions about it."""

    cells: tuple[str, ...]
    asks: Mapping[str, str]


@define
class Teller:
    """Makes facts and filler; codes are never given twice."""

    rng: random.Random
    _codes: set[str] = field(factory=set)

    def pick(self, among: Sequence[T]) -> T:
        return self.rng.choices(among)[0]

    def shuffled(self, among: Sequence[T]) -> list[T]:
        """In another order; of `choices` alone, as everything here."""
        keys = self.rng.choices(range(1 << 30), k=len(among))
        return [one for _, _, one in sorted(zip(keys, range(len(among)), among, strict=True))]

    def code(self) -> str:
        while (made := f"{self.pick(LETTERS)}-{self.pick(range(1000, 10000))}") in self._codes:
            pass
        self._codes.add(made)
        return made

    def slots(self, language: Language, given: Mapping[str, str]) -> dict[str, str]:
        """A value for each slot but those given."""
        when = _FIRST_DAY + timedelta(days=self.pick(range(1500)))
        return {
            "p": self.pick(language.people),
            "q": self.pick(language.people),
            "c": self.pick(language.towns),
            "n": str(self.pick(range(11, 98))),
            "f": str(self.pick(range(2, 10))),
            "m": language.money.format(self.pick(range(12, 990)) * 100),
            "d": language.day(when),
            "h": f"{self.pick('ABCDEF')}{self.pick(range(10, 60))}",
            "k": "",
            **given,
        }

    def fact(self, matter: Matter, language: Language = ENGLISH, **given: str) -> Fact:
        """The matter with these slots given and all others drawn."""
        slots = self.slots(language, given)
        slots["k"] = self.code()
        ways = zip(KINDS, (matter.words, matter.other, matter.named), strict=True)
        return Fact(
            matter.heading.format(**slots),
            matter.says.format(**slots),
            matter.answer.format(**slots),
            {kind: self.pick(forms).format(**slots) for kind, forms in ways},
        )

    def rows(self, register: Register, site: str, item: str, count: int) -> list[Row]:
        """Rows of one page, each with a thing of its own."""
        things = [
            (f"{which} {name}", f"{which} {other}") for name, other in register.things for which in TELLING
        ]
        rows = []
        for thing, other in self.shuffled(things)[:count]:
            slots = self.slots(ENGLISH, {"s": site, "i": item, "t": thing, "u": other})
            slots["k"] = self.code()
            ways = zip(KINDS, (register.words, register.other, register.named), strict=True)
            asks = {kind: self.pick(forms).format(**slots) for kind, forms in ways}
            rows.append(Row((thing, *(cell.format(**slots) for cell in register.cells)), asks))
        return rows

    def filler(self, language: Language = ENGLISH) -> str:
        """A sentence that answers nothing; a third of the English ones are words of the corpus."""
        if language is ENGLISH and self.rng.random() < 0.33:
            words = vocabulary_of(self.pick(tuple(TOPICS))).draw(self.rng, self.pick(range(9, 19)))
            return " ".join(words).capitalize() + "."
        return self.pick(language.fillers).format(**self.slots(language, {}))

    def paragraph(self, language: Language = ENGLISH, least: int = 3, most: int = 6) -> str:
        """That many sentences of filler."""
        return " ".join(self.filler(language) for _ in range(self.pick(range(least, most + 1))))
