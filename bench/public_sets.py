"""Public collections with judgements that are not part of the repository: LoCoMo, BEAM and CoSQA.

Each reader takes the files as they are published. A conversation becomes a vault of its own, because its
questions are about this conversation. Its notes are sessions or single turns (`NOTES`). Questions that name
no evidence are skipped, such as those whose right answer is "there is no information".

Formats, read on 2026-11-29: LoCoMo is `data/locomo10.json` of snap-research/locomo. BEAM is a folder such as
`chats/100K` of mohammadtavakoli78/BEAM. CoSQA is a folder with `code_idx_map.txt` and
`cosqa-retrieval-test-500.json` of Jun-jie-Huang/CoCLR (`data/search`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.judged import Chunk, Collection, JudgedQuery

#: The part of a conversation that becomes one note.
NOTES: Final = ("sessions", "turns")
#: LoCoMo's category of questions whose premise is false. Their evidence does not answer them.
_ADVERSARIAL: Final = 5
#: BEAM's key of the ids of the messages with the evidence.
_SOURCES: Final = "source_chat_ids"
#: A mark at the end of a message of BEAM: the place of its topic in the plan of the conversation.
_PLACE: Final = re.compile(r"\s*->->\s*[\d,]+\s*$")


def read_locomo(file: Path, notes: str) -> Iterator[Collection]:
    """Yield the conversations of LoCoMo. A question is of the kind of its category, a number."""
    for number, each in enumerate(_read(file)):
        chunks, talk = list[Chunk](), each["conversation"]
        place_of = dict[str, str]()
        for session in sorted((key for key in talk if re.fullmatch(r"session_\d+", key)), key=_number):
            date = talk.get(f"{session}_date_time", "")
            said = [(turn["dia_id"], f"{turn['speaker']}: {turn['text']}") for turn in talk[session]]
            chunks += _notes_of(session, f"Date: {date}", said, notes)
            place_of |= {turn: session if notes == "sessions" else turn for turn, _ in said}
        queries = (
            _query(
                f"{number}-{place}", asked["question"], str(asked["category"]), asked["evidence"], place_of
            )
            for place, asked in enumerate(each["qa"])
            if asked.get("category") != _ADVERSARIAL and asked.get("evidence")
        )
        yield Collection(f"locomo-{number:02}-{notes}", tuple(chunks), _answered(queries))


def read_beam(folder: Path, notes: str) -> Iterator[Collection]:
    """Yield the conversations of BEAM. A question is of the kind of the ability that it tests."""
    for chat in sorted(folder.glob("*/chat.json"), key=lambda path: _number(path.parent.name)):
        name, chunks, place_of, number = chat.parent.name, list[Chunk](), dict[str, str](), 0
        for batch in _read(chat):
            for messages in batch["turns"]:
                number += 1
                date = next((each["time_anchor"] for each in messages if each.get("time_anchor")), "")
                said = [
                    (str(each["id"]), f"{each['role']}: {_PLACE.sub('', each['content'])}")
                    for each in messages
                ]
                chunks += _notes_of(f"session {number}", f"Date: {date}" if date else "", said, notes)
                place_of |= {turn: f"session {number}" if notes == "sessions" else turn for turn, _ in said}
        asked = _read(chat.parent / "probing_questions" / "probing_questions.json")
        queries = (
            _query(f"{name}-{kind}-{place}", each["question"], kind, _flat(each[_SOURCES]), place_of)
            for kind, some in asked.items()
            for place, each in enumerate(some)
            if each.get(_SOURCES)
        )  # fmt: skip
        yield Collection(f"beam-{name}-{notes}", tuple(chunks), _answered(queries))


def read_cosqa(folder: Path, notes: str = "") -> Iterator[Collection]:
    """Yield the functions of CoSQA, one note each, with the 500 questions of its retrieval test."""
    del notes
    chunks = tuple(
        Chunk(str(number), str(number), f"```python\n{code}\n```")
        for code, number in _read(folder / "code_idx_map.txt").items()
    )
    known = {chunk.doc: chunk.doc for chunk in chunks}
    queries = (
        _query(each["idx"], each["doc"], "", [each["retrieval_idx"]], known)
        for each in _read(folder / "cosqa-retrieval-test-500.json")
    )
    yield Collection("cosqa", chunks, _answered(queries))


#: The reader of each collection.
READERS: Final[Mapping[str, Callable[[Path, str], Iterator[Collection]]]] = {
    "locomo": read_locomo,
    "beam": read_beam,
    "cosqa": read_cosqa,
}


def _read(path: Path) -> Any:
    """Return the content of a JSON file. Raises `SystemExit` if that is not possible."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read as JSON: {error}. Name the published files.") from error


def _notes_of(session: str, head: str, said: Sequence[tuple[str, str]], notes: str) -> list[Chunk]:
    """Return the notes of one session. `said` has the id and the text of each turn."""
    parts = [head] if head else []
    if notes == "sessions":
        return [Chunk(session, session, "\n\n".join([*parts, *(text for _, text in said)]), session)]
    return [Chunk(turn, turn, "\n\n".join([*parts, text]), session) for turn, text in said]


def _query(
    name: str, text: str, kind: str, evidence: Sequence[object], place_of: Mapping[str, str]
) -> JudgedQuery:
    """Return a question. Its answers are the notes with the evidence, as far as they exist.

    LoCoMo sometimes joins several turns into one text, such as `D8:6; D9:17`.
    """
    turns = [turn for each in evidence for turn in re.split(r"[;,\s]+", str(each))]
    return JudgedQuery(name, text, kind, {place_of[turn]: 1 for turn in turns if turn in place_of})


def _answered(queries: Iterator[JudgedQuery]) -> tuple[JudgedQuery, ...]:
    return tuple(query for query in queries if query.grades)


def _flat(ids: Any) -> list[object]:
    """Return the ids in a list, or in an object of lists."""
    if isinstance(ids, Mapping):
        return [each for some in ids.values() for each in _flat(some)]
    if isinstance(ids, list):
        return [each for some in ids for each in _flat(some)]
    return [ids]


def _number(name: str) -> int:
    digits = re.search(r"\d+", name)
    return int(digits[0]) if digits else 0
