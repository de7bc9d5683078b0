"""Generated transcripts in the form of Claude Code, with facts that questions ask for.

A transcript consists of prompts, answers, tool calls and long outputs of tools. A few answers per transcript
state a fact about a made-up system. A question asks for the fact with the system's name and other words.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from bench.corpus import vocabulary_of
from bench.words import TOPICS

#: Facts, and a question for each in other words. `{name}` is the system and `{value}` the answer.
FACTS: Final = (
    ("The {name} gateway listens on port {value}.", "which network address number does {name} accept on"),
    ("Backups of {name} are kept for {value} days.", "how long do we retain copies of {name}"),
    ("{name} is deployed by {value} every week.", "who releases {name} to production"),
    ("We decided to cache {name} for {value} seconds.", "what time to live did we choose in {name}"),
    ("The bug in {name} was a race in {value}.", "root cause of the concurrency defect of {name}"),
    ("{name} stores its sessions in {value}.", "where does {name} persist logins"),
    ("The memory limit of {name} is {value} megabytes.", "how much RAM may {name} use"),
    ("Tests of {name} fail if {value} is offline.", "what does the suite of {name} depend on"),
)
_VALUES: Final = (
    "Redis", "Postgres", "Anna", "Jonas", "the scheduler", "the parser", "the mail relay", "the queue",
)  # fmt: skip
_TOPICS: Final = tuple(TOPICS)[:12]
_TOOLS: Final = (("Read", "file_path"), ("Edit", "file_path"), ("Bash", "command"), ("Grep", "pattern"))
_FIRST: Final = datetime(2026, 9, 1, 8, tzinfo=UTC)


@frozen
class AskedFact:
    """A fact, the transcript that states it, and two questions: in its words and in other words."""

    session: str
    statement: str
    by_words: str
    in_other_words: str


def generate_sessions(folder: Path, sessions: int, size: int, seed: int = 7) -> list[AskedFact]:
    """Write transcripts of about `size` bytes. Return the facts, two per transcript."""
    rng = random.Random(seed)
    facts = list[AskedFact]()
    for number in range(sessions):
        name = f"session-{number:05}"
        own = [_fact(rng, name, 2 * number + place) for place in range(2)]
        facts += own
        path = folder / f"-srv-project-{number % 20}" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            written = 0
            for record in _records(rng, number, name, [each.statement for each in own]):
                written += file.write(json.dumps(record) + "\n")
                if written >= size:
                    break
    return facts


def unanswerable(questions: int, seed: int = 8) -> list[str]:
    """Return questions about systems that no transcript mentions."""
    rng = random.Random(seed)
    return [rng.choice(FACTS)[1].format(name=f"Zorvan{number}") for number in range(questions)]


def _fact(rng: random.Random, session: str, number: int) -> AskedFact:
    statement, question = rng.choice(FACTS)
    name = f"{rng.choice(('Falkor', 'Merid', 'Quent', 'Tarva', 'Ostin', 'Belisk'))}{number}"
    value = str(rng.randrange(10, 9_000)) if rng.random() < 0.6 else rng.choice(_VALUES)
    said = statement.format(name=name, value=value)
    return AskedFact(session, said, said.rstrip("."), question.format(name=name))


def _records(rng: random.Random, number: int, name: str, facts: Sequence[str]) -> Iterator[dict[str, Any]]:
    when = _FIRST + timedelta(hours=2 * number)
    common = {"sessionId": name, "cwd": f"/srv/project-{number % 20}", "isSidechain": False}
    places = {rng.randrange(2, 12): fact for fact in facts}
    places |= {20 + place: fact for place, fact in enumerate(facts) if fact not in places.values()}
    turn = 0
    while True:
        when += timedelta(minutes=1)
        stamp = {"timestamp": when.isoformat().replace("+00:00", "Z"), **common}
        topic = rng.choice(_TOPICS)
        prompt = f"Please look at {_words(rng, topic, 25)}."
        yield {"type": "user", "message": {"role": "user", "content": prompt}, **stamp}
        stated = f"{places[turn]}\n\n" if turn in places else ""
        said = f"I see that {_words(rng, topic, 60)}.\n\n{stated}Then {_words(rng, topic, 40)}."
        block: dict[str, Any] = {"type": "text", "text": said}
        yield {"type": "assistant", "message": {"id": f"m{turn}", "content": [block]}, **stamp}
        for call in range(rng.randrange(1, 4)):
            tool, argument = rng.choice(_TOOLS)
            block = {"type": "tool_use", "name": tool, "input": {argument: f"src/part_{turn}_{call}.py"}}
            yield {"type": "assistant", "message": {"id": f"m{turn}", "content": [block]}, **stamp}
            output = _words(rng, topic, rng.randrange(100, 500)).replace(". ", ".\n")
            block = {"type": "tool_result", "content": output}
            yield {"type": "user", "message": {"role": "user", "content": [block]}, **stamp}
        yield {"type": "progress", "data": {"type": "bash_progress", "output": "x" * 500}, **stamp}
        turn += 1


def _words(rng: random.Random, topic: str, count: int) -> str:
    words = vocabulary_of(topic).draw(rng, count)
    return ". ".join(" ".join(words[start : start + 14]) for start in range(0, count, 14))
