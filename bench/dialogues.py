"""Generated two-person conversations with known answers. They resemble the memories of agents.

Every conversation has 20 sessions of 25 short turns in ten months. Some turns state a fact, often only in
combination with the previous question by the other speaker. The remaining turns are small talk, reactions to
facts, and sentences by the same people that mention the same topics but state nothing. Both speakers have
facts of the same kinds, and all conversations are in one vault, so an answer depends on the name. A later
turn may supersede a fact.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from attrs import define, field, frozen

from bench.dialogue_topics import SERIES, TRAITS, Series, Trait
from bench.dialogue_words import ADJECTIVES, DECOYS, NOTHINGS, OPENERS, PEOPLE, REACTIONS, SMALL_TALK, TAILS

CONVERSATIONS, SESSIONS, TURNS = 10, 20, 25
#: Number of facts in a series per speaker, each in a different month, and number of superseded facts per
#: speaker.
EPISODES, CHANGED = 3, 2
#: Probabilities, in this order: a fact is stated as an answer; the topic of any other fact is announced; a
#: speaker reacts to a fact; filler mentions a topic; filler announces a topic without a fact.
ELLIPTICAL, ANNOUNCED, REACTING, DECOY, EMPTY = 0.35, 0.8, 0.5, 0.15, 0.15
#: Number of questions per conversation, by kind.
QUESTIONS = {"single": 60, "several": 20, "time": 20}
_FIRST_DAY, _DAYS_APART = datetime(2024, 1, 8), 15


@frozen
class Turn:
    """One statement of a speaker. `session` is the number of the session in its conversation, from 0."""

    id: str
    session: str
    speaker: str
    when: datetime
    text: str


@frozen
class Question:
    """A question of kind single, several or time, with the ids of all turns that are needed to answer it."""

    id: str
    text: str
    kind: str
    turns: tuple[str, ...]


@frozen
class Conversation:
    """The turns of two people in order, and the questions about these turns."""

    speakers: tuple[str, str]
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


@define
class _Line:
    """A turn that has no position yet. `fact` is the key of the fact that the turn states."""

    speaker: int
    text: str
    fact: str = ""


@frozen
class _Fact:
    key: str
    speaker: int
    session: int
    lines: tuple[_Line, ...]


def generate_conversations(count: int = CONVERSATIONS, seed: int = 7) -> list[Conversation]:
    """Return generated conversations.

    Equal seeds give equal results. Each name occurs in only one conversation.
    """
    return [_Writer(n, random.Random(f"conversation:{seed}:{n}")).write() for n in range(count)]


@define
class _Writer:
    """The writer of one conversation."""

    number: int
    rng: random.Random
    speakers: tuple[str, str] = field(init=False)
    _days: list[datetime] = field(init=False)
    _load: Counter[int] = field(factory=Counter)
    _facts: list[_Fact] = field(factory=list)
    _values: dict[str, tuple[str, str]] = field(factory=dict)
    _turn_of: dict[str, Turn] = field(factory=dict)
    _changed: set[str] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.speakers = (PEOPLE[2 * self.number], PEOPLE[2 * self.number + 1])
        start = _FIRST_DAY + timedelta(days=3 * self.number)
        self._days = [
            start + timedelta(days=_DAYS_APART * session + self.rng.randrange(-4, 5))
            for session in range(SESSIONS)
        ]

    def write(self) -> Conversation:
        self._tell_traits()
        self._tell_series()
        turns = tuple(self._place())
        questions = [*self._ask_single(), *self._ask_several(), *self._ask_time()]
        asked = tuple(
            Question(f"{self.number}-{place:03}", text, kind, turn_ids)
            for place, (kind, text, turn_ids) in enumerate(questions)
        )
        return Conversation(self.speakers, turns, asked)

    def _tell_traits(self) -> None:
        changing = [trait for trait in TRAITS if trait.changes]
        for speaker in (0, 1):
            self._changed |= {f"{trait.name}:{speaker}" for trait in self.rng.sample(changing, CHANGED)}
        for trait in TRAITS:
            values = self.rng.sample(trait.values, 4)
            for speaker in (0, 1):
                key = f"{trait.name}:{speaker}"
                half = SESSIONS // 2
                self._tell(key, speaker, range(half), trait, (values[speaker], ""))
                if key in self._changed:
                    later = range(half + 1, SESSIONS)
                    said, value = self._announced(trait, trait.changes), values[speaker + 2]
                    self._add(f"{key}:now", speaker, later, said, (value, ""))

    def _tell_series(self) -> None:
        for series in SERIES:
            values = self.rng.sample(series.values, 2 * EPISODES)
            for speaker in (0, 1):
                own = values[speaker * EPISODES : (speaker + 1) * EPISODES]
                months = self.rng.sample(self._months(), EPISODES)
                for episode, (value, month) in enumerate(zip(own, months, strict=True)):
                    self._tell(f"{series.name}:{speaker}:{episode}", speaker, month, series, value)

    def _months(self) -> list[list[int]]:
        """Return the sessions in each month."""
        months: dict[str, list[int]] = {}
        for session, day in enumerate(self._days):
            months.setdefault(f"{day:%Y-%m}", []).append(session)
        return list(months.values())

    def _tell(
        self, key: str, speaker: int, sessions: Sequence[int], kind: Trait | Series, value: tuple[str, str]
    ) -> None:
        if self.rng.random() < ELLIPTICAL:
            prompt, said = self.rng.choice(kind.pairs)
            self._add(key, speaker, sessions, said, value, prompt=prompt)
        else:
            self._add(key, speaker, sessions, self._announced(kind, kind.says), value)

    def _announced(self, kind: Trait | Series, forms: Sequence[str]) -> str:
        """Return one of the forms. In some cases, its topic is announced first."""
        openers = kind.topics if self.rng.random() < ANNOUNCED else OPENERS
        said = self.rng.choice(forms)
        said = f"{{V}}{said[3:]}" if said.startswith("{v}") else said
        return f"{self.rng.choice(openers)} {said}".strip()

    def _add(
        self,
        key: str,
        speaker: int,
        sessions: Sequence[int],
        said: str,
        value: tuple[str, str],
        *,
        prompt: str = "",
    ) -> None:
        """Add a fact to the session that has the fewest turns."""
        text = _capitalised(said.format(v=value[0], V=_capitalised(value[0]), d=value[1]))
        lines = [_Line(1 - speaker, prompt)] if prompt else []
        lines.append(_Line(speaker, f"{text} {self.rng.choice(TAILS)}".strip(), key))
        if self.rng.random() < REACTING:
            reaction = self.rng.choice(REACTIONS).format(p=self.speakers[speaker], v=value[0])
            lines.append(_Line(1 - speaker, _capitalised(reaction)))
        shuffled = self.rng.sample(list(sessions), len(sessions))
        session = min(shuffled, key=lambda one: self._load[one])
        self._load[session] += len(lines)
        self._values[key] = value
        self._facts.append(_Fact(key, speaker, session, tuple(lines)))

    def _place(self) -> Iterator[Turn]:
        for session, day in enumerate(self._days):
            blocks = [fact.lines for fact in self._facts if fact.session == session]
            missing = TURNS - sum(map(len, blocks))
            assert missing >= 0, f"session {session} of {self.speakers} is too full"
            blocks += [(_Line(-1, ""),)] * missing
            self.rng.shuffle(blocks)
            yield from self._dated(session, day, [line for block in blocks for line in block])

    def _dated(self, session: int, day: datetime, lines: Sequence[_Line]) -> Iterator[Turn]:
        when = day.replace(hour=self.rng.randrange(8, 22), minute=self.rng.randrange(60))
        last = self.rng.randrange(2)
        for place, line in enumerate(lines):
            is_filler = line.speaker < 0
            last = 1 - last if is_filler else line.speaker
            turn = Turn(
                id=f"{self.number}-{session:02}-{place:02}",
                session=f"{self.number}-{session:02}",
                speaker=self.speakers[last],
                when=when,
                text=self._filler(self.speakers[1 - last]) if is_filler else line.text,
            )
            if line.fact:
                self._turn_of[line.fact] = turn
            yield turn
            when += timedelta(minutes=self.rng.randrange(1, 4))

    def _filler(self, other: str) -> str:
        drawn = self.rng.random()
        if drawn < DECOY:
            return self.rng.choice(DECOYS)
        if drawn < DECOY + EMPTY:
            topics = self.rng.choice((*TRAITS, *SERIES)).topics
            return f"{self.rng.choice(topics)} {_capitalised(self.rng.choice(NOTHINGS))}"
        parts = [self.rng.choice(some) for some in SMALL_TALK]
        text = " ".join(parts).replace(" ,", ",")
        return text.format(p=other, a=self.rng.choice(ADJECTIVES))

    def _ask_single(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        asked = [
            self._question("single", trait.asks, speaker, [f"{trait.name}:{speaker}"])
            for trait in TRAITS
            for speaker in (0, 1)
            if f"{trait.name}:{speaker}" not in self._changed
        ]
        yield from asked
        for series, speaker, key in self._episodes(QUESTIONS["single"] - len(asked)):
            yield self._question("single", series.asks, speaker, [key])

    def _ask_several(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        for series in SERIES:
            for speaker in (0, 1):
                keys = [f"{series.name}:{speaker}:{episode}" for episode in range(EPISODES)]
                yield self._question("several", series.several, speaker, keys)
        unchanged = [
            trait
            for trait in TRAITS
            if trait.both and not {f"{trait.name}:0", f"{trait.name}:1"} & self._changed
        ]
        for trait in self.rng.sample(unchanged, QUESTIONS["several"] - 2 * len(SERIES)):
            yield self._question("several", (trait.both,), 0, [f"{trait.name}:0", f"{trait.name}:1"])

    def _ask_time(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        traits = {trait.name: trait for trait in TRAITS}
        for key in sorted(self._changed):
            name, _, speaker = key.partition(":")
            yield self._question("time", traits[name].now, int(speaker), [f"{key}:now"])
        rest = QUESTIONS["time"] - len(self._changed)
        for place, (series, speaker, key) in enumerate(self._episodes(rest)):
            phrases = series.when if place < rest // 2 else series.month
            yield self._question("time", phrases, speaker, [key])

    def _episodes(self, count: int) -> list[tuple[Series, int, str]]:
        every = [
            (series, speaker, f"{series.name}:{speaker}:{episode}")
            for series in SERIES
            for speaker in (0, 1)
            for episode in range(EPISODES)
        ]
        return self.rng.sample(every, count)

    def _question(
        self, kind: str, phrases: Sequence[str], speaker: int, keys: Sequence[str]
    ) -> tuple[str, str, tuple[str, ...]]:
        turns = [self._turn_of[key] for key in keys]
        text = self.rng.choice(phrases).format(
            p=self.speakers[speaker],
            q=self.speakers[1 - speaker],
            v=self._values[keys[0]][0],
            m=f"{turns[0].when:%B %Y}",
        )
        return kind, text, tuple(turn.id for turn in turns)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
