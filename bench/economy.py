"""Benchmark of answer sizes: characters returned, share of note text in them, and evidence shown.

`python -m bench.economy` calls the tools that search, list, write and read notes. It counts the characters of
each whole answer, which is the JSON text that the client receives. The notes are generated conversations
(`bench/dialogues.py`) with one note per session or turn, and the notes of `COLLECTIONS`, `--vault` and
`--locomo`. Each set is measured with `server.answers: full` and `compact`, which the results call `setting`.
The same revision always gives the same figures:

* `economy`: the mean number of characters in an answer of a tool with given arguments, and the share of note
  text, including the headings above it (`text`, `snippet`, `content`). For briefings, also the largest ratio
  of a whole answer's tokens (four characters each) to the budget. For lists, also the characters per row.
  `write` and `read 500` use new notes of 500 characters.
* `evidence`: the share of questions for which the answering sentences are in the first 2,000, 4,000 and 8,000
  characters of an answer. `context` is the briefing with the largest budget that fits, or the smallest
  briefing, truncated. `search` returns ten rows. `grep` is the reference. It takes the files with most of the
  question's words (by idf), and shows the three best lines with two lines around each, as the path and
  `number: line`.

`--check` fails if a figure of sessions under `compact` is more than 2 % worse than in `economy.json`: a
longer answer, a smaller share of note text, or less evidence (by more than one question of 40). A briefing
may grow up to its budget. `--keep` writes the figures of this revision to the file instead. A slow test does
the same as `--check`.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeAlias

import trio
from attrs import evolve, frozen

from bench import economy_notes
from bench.conversations import LAYOUTS, as_collection
from bench.dialogues import generate_conversations
from bench.grep import Grep
from bench.judged import Collection, JudgedQuery, read_collections
from bench.rankings import called, mean
from bench.report import print_report
from bench.vaults import Vaults
from lithos.app.server import Server
from lithos.kernel.values.principals import OWNER
from lithos.server.settings import ServerConfig
from lithos.text.words.analysis import fold, words

Answers: TypeAlias = Literal["full", "compact"]
#: Figures by call and name, or by limit (in characters) and name.
Figures = Mapping[str, Mapping[str, float]]

KEPT = Path(__file__).with_name("economy.json")
#: Share by which a figure may be worse than the stored one.
MARGIN = 0.02
#: Figures that are better if they are smaller, and figures that are better if they are larger.
SMALLER, LARGER = ("characters", "a_row", "most_of_budget"), ("of_notes", "evidence")
#: Number of questions for the stored figures, number of questions for a measurement, and random seed.
KEPT_QUESTIONS, QUESTIONS, SEED = 40, 150, 7
#: Numbers of characters. Evidence is searched in the first characters of an answer, up to each of these
#: limits.
LIMITS = (2_000, 4_000, 8_000)
#: Token budgets of briefings, largest first.
BUDGETS = (4_000, 3_500, 3_000, 2_000, 1_750, 1_500, 1_000, 850, 750, 500, 350, 250)
#: Characters per token, and number of words in a run that identifies a sentence.
TOKEN, RUN = 4, 5
#: Measured calls by name. The question is added to the arguments of each call.
CALLS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{f"context {budget}": ("lithos_context", {"budget": budget}) for budget in (500, 1_000, 2_000, 4_000)},
    "search 10": ("lithos_search", {"limit": 10}),
    "retrieve 10": ("lithos_retrieve", {"limit": 10}),
    "cache_lookup": ("lithos_cache_lookup", {}),
}
#: Number of requested lists, number of their rows, number of notes that are written and read, and characters
#: of these notes.
LISTS, ROWS, WRITTEN, LENGTH = 5, 50, 20, 500
SETTINGS: tuple[Answers, ...] = ("full", "compact")
#: Fields that contain note text and the headings above it, and names of lists that contain rows.
TEXTS, ROW_KEYS = frozenset(("text", "snippet", "content")), ("results", "items")


@frozen
class Subject:
    """A collection, and its questions with the sentences that an answer must show."""

    collection: Collection
    cases: Sequence[tuple[JudgedQuery, Sequence[str]]]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.economy", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("collections", nargs="?", type=Path, help="a folder of judged collections")
    parser.add_argument("--vault", type=Path, help="a folder of Markdown notes")
    parser.add_argument("--locomo", type=Path, help="a file of LoCoMo conversations (JSON)")
    parser.add_argument("--layouts", nargs="*", choices=LAYOUTS, default=LAYOUTS)
    parser.add_argument("--sample", type=int, default=QUESTIONS, metavar="N", help="questions")
    parser.add_argument("--check", action="store_true", help="compare with economy.json")
    parser.add_argument("--keep", action="store_true", help="write the figures to economy.json")
    options = parser.parse_args()
    if options.keep:
        KEPT.write_text(json.dumps(measure_kept(), indent=1) + "\n", encoding="utf-8")
    elif options.check:
        found = worse(measure_kept(), json.loads(KEPT.read_text(encoding="utf-8")))
        print("\n".join(found) or "No answer costs more than the stored figures allow.")
        sys.exit(bool(found))
    else:
        for subject in subjects(options):
            for setting in SETTINGS:
                for figures in _measured(subject, setting):
                    print_report(**figures)


def subjects(options: argparse.Namespace) -> Iterator[Subject]:
    """Yield the collections that are measured."""
    for each in read_collections(options.collections, ()) if options.collections else ():
        collection = each.laid_out("pages").sample(options.sample)
        yield Subject(collection, economy_notes.of_judged(evolve(each, queries=collection.queries)))
    if options.vault is not None:
        yield Subject(*economy_notes.of_vault(options.vault, options.sample, SEED))
    if options.locomo is not None:
        yield Subject(*economy_notes.of_locomo(options.locomo, options.sample, SEED))
    for layout in options.layouts:
        yield generated(layout, options.sample)


def generated(layout: str, sample: int) -> Subject:
    """Return generated conversations in a layout, and a sample of questions about them."""
    conversations = generate_conversations(seed=SEED)
    collection = as_collection(conversations, layout)
    texts = {turn.id: turn.text for one in conversations for turn in one.turns}
    turns = {question.id: question.turns for one in conversations for question in one.questions}
    queries = list(collection.queries)
    random.Random(SEED).shuffle(queries)
    return Subject(
        collection, [(each, [texts[turn] for turn in turns[each.id]]) for each in queries[:sample]]
    )


def measure_kept() -> dict[str, dict[str, float]]:
    """Return the values of this revision for the stored figures."""
    figures: dict[str, dict[str, float]] = {}
    for row in _measured(generated("sessions", KEPT_QUESTIONS), "compact"):
        if row["bench"] == "evidence":
            figures[f"within {row['within']}"] = {"evidence": row["shown"]["context"]}
        else:
            figures[row["call"]] = {each: row[each] for each in (*SMALLER, *LARGER) if row.get(each)}
        if "most_of_budget" in row:
            figures[row["call"]] |= {"most_of_budget": max(1.0, row["most_of_budget"])}
            del figures[row["call"]]["characters"]
    return figures


def worse(figures: Figures, kept: Figures) -> list[str]:
    """Return a sentence for each figure that is worse than the stored figure by more than the margin."""
    found: list[str] = []
    for call, each in kept.items():
        for name, before in each.items():
            now = figures.get(call, {}).get(name)
            if now is None:
                found.append(f"{call}: {name} is no longer measured.")
            elif now > before * (1 + MARGIN) if name in SMALLER else now < least(name, before):
                found.append(f"{call}: {name} is {now:g}, and {before:g} is kept in {KEPT.name}.")
    return found


def least(name: str, before: float) -> float:
    """Return the smallest acceptable value.

    Evidence may drop by one question, which is its smallest change.
    """
    return (
        min(before * (1 - MARGIN), before - 100 / KEPT_QUESTIONS)
        if name == "evidence"
        else before * (1 - MARGIN)
    )


def _measured(subject: Subject, setting: Answers) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="lithos-economy-") as folder:
        vaults = Vaults(Path(folder), server=ServerConfig(answers=setting))
        return trio.run(measure, subject, vaults)


async def measure(subject: Subject, vaults: Vaults) -> list[dict[str, Any]]:
    """Return the figures of all calls, and of the evidence in their answers and in the reference."""
    figures: list[dict[str, Any]] = []
    async with vaults.serving(subject.collection) as server:
        for name in CALLS:
            figures.append(await _costs(server, subject, name))
        if any(passages for _, passages in subject.cases):
            figures += await _evidence(server, subject)
        figures.append(await _list_costs(server, subject))
        figures += await _note_costs(server, subject)
    return [{"setting": vaults.server.answers} | each for each in figures]


async def asked(server: Server, tool: str, **arguments: object) -> Mapping[str, object]:
    """Return the answer of a tool to a client. Calls by Lithos itself would always get full answers."""
    return await called(server, tool, principal=OWNER, **arguments)


def as_sent(answer: Mapping[str, object]) -> str:
    """Return an answer as the text that the client receives."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def note_characters(answer: object) -> int:
    """Return how many characters of an answer are note text, counted in the form in which they are sent."""
    if isinstance(answer, Mapping):
        return sum(
            len(json.dumps(value, ensure_ascii=False)) - 2
            if key in TEXTS and isinstance(value, str)
            else note_characters(value)
            for key, value in answer.items()
        )
    return sum(map(note_characters, answer)) if isinstance(answer, list | tuple) else 0


async def _costs(server: Server, subject: Subject, name: str) -> dict[str, Any]:
    tool, arguments = CALLS[name]
    answers = [await asked(server, tool, query=query.text, **arguments) for query, _ in subject.cases]
    figures = _row(subject, name, answers)
    if "budget" in arguments:
        most = max(math.ceil(len(as_sent(answer)) / TOKEN) for answer in answers)
        figures["most_of_budget"] = round(most / arguments["budget"], 2)
    return figures


async def _list_costs(server: Server, subject: Subject) -> dict[str, Any]:
    pages = [await asked(server, "lithos_list", limit=ROWS, offset=ROWS * page) for page in range(LISTS)]
    return _row(subject, f"list {ROWS}", [page for page in pages if page.get("items")])


async def _note_costs(server: Server, subject: Subject) -> list[dict[str, Any]]:
    """Return the cost of writing and of reading notes with about 500 characters."""
    known = sorted({word for chunk in subject.collection.chunks[:200] for word in chunk.text.split()})
    written, read = list[Mapping[str, object]](), list[Mapping[str, object]]()
    random.Random(0).shuffle(known)
    for number in range(WRITTEN):
        # If the vocabulary is large enough, no word occurs in two notes. No note is then reported as
        # `similar`.
        text = " ".join(known[number::WRITTEN] * LENGTH)[:LENGTH].strip()
        note = {"title": f"Economy {number:02}", "content": text, "path": "economy"}
        written.append(await asked(server, "lithos_write", agent="bench", **note))
        read.append(await asked(server, "lithos_read", id=written[-1]["id"]))
    # The median is used because a write sometimes reports more, for example that an index is behind. All
    # names have the same length, so that such a write does not change the median.
    usual = round(median(len(as_sent(answer)) for answer in written))
    return [_row(subject, "write", written) | {"characters": usual}, _row(subject, f"read {LENGTH}", read)]


def _row(subject: Subject, name: str, answers: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    whole = sum(len(as_sent(answer)) for answer in answers)
    rows = sum(
        len(each) for answer in answers for key in ROW_KEYS if isinstance(each := answer.get(key), list)
    )
    figures: dict[str, Any] = {
        "bench": "economy",
        "collection": subject.collection.name,
        "call": name,
        "answers": len(answers),
        "characters": round(whole / len(answers)),
        "of_notes": round(100 * sum(map(note_characters, answers)) / whole, 1),
    }
    return figures | ({"a_row": round(whole / rows)} if rows and "context" not in name else {})


async def _evidence(server: Server, subject: Subject) -> list[dict[str, Any]]:
    shown: dict[tuple[str, int], list[float]] = defaultdict(list)
    grep = Grep.over(subject.collection.chunks)
    for query, answer in subject.cases:
        briefings = [await asked(server, "lithos_context", query=query.text, budget=each) for each in BUDGETS]
        rows = await asked(server, "lithos_search", query=query.text, limit=10)
        sent = {"context": list(map(as_sent, briefings)), "search": [as_sent(rows)]}
        for limit in LIMITS:
            texts = {way: _fitting(some, limit) for way, some in sent.items()}
            for way, text in (texts | {"grep": grep.find(query.text, limit)}).items():
                shown[way, limit].append(float(is_shown(answer, text)))
    return [
        {
            "bench": "evidence",
            "collection": subject.collection.name,
            "within": limit,
            "questions": len(subject.cases),
            "shown": {way: mean(shown[way, limit]) for way in ("context", "search", "grep")},
        }
        for limit in LIMITS
    ]


def _fitting(answers: Sequence[str], limit: int) -> str:
    """Return the first answer within the limit, or else the last answer, truncated. Escapes are decoded."""
    text = next((answer for answer in answers if len(answer) <= limit), answers[-1][:limit])
    return text.replace("\\n", "\n").replace('\\"', '"')


def is_shown(sentences: Sequence[str], text: str) -> bool:
    """Return whether a text contains every run of five words in each sentence."""
    there = _runs(text)
    return all(_runs(sentence) <= there for sentence in sentences)


def _runs(text: str) -> set[tuple[str, ...]]:
    """Return the runs of five words in a text. If the text is shorter, return the whole text."""
    found = [word for _, word in words(fold(text))]
    if len(found) <= RUN:
        return {tuple(found)}
    return {tuple(found[start : start + RUN]) for start in range(len(found) - RUN + 1)}


if __name__ == "__main__":
    main()
