"""What an answer costs the agent: characters returned, how many of them are text of notes, evidence shown.

`python -m bench.economy COLLECTIONS --vault DIR --data DIR` asks the tools that search, lists, writes and
reads some notes, and counts the characters of each whole answer: the compact JSON that the client receives as
text. It does so under `server.answers: full` and `compact`, which the results call `setting`. No language
model takes part, and the same notes give the same figures. Each result is a JSON line:

* `economy`: for a tool and its arguments, the mean characters of an answer, and the share of them that is
  text of notes with the headings over it (`text`, `snippet`, `content`). For briefings also the largest
  ratio of the tokens of a whole answer (four characters each) to the budget, for lists of rows the characters
  of a row. `write` and `read 500` are about new notes of 500 characters of the collection's words.
* `evidence`: the share of questions whose answering passage is within the first 2,000, 4,000 and 8,000
  characters of an answer. `context` is the briefing with the largest budget that fits, or the smallest,
  cut; `search` is ten rows. `grep` is the reference: of the files with most of the question's words (by
  idf), the three best lines with two lines around each, as the path and `number: line`.

The subjects are those of `bench.context`: judged collections as whole pages, and generated dialogues, a
note a session and a note a turn. `--vault` adds the notes of a vault, which are asked for their own
headings, for the first kind of figures. `--locomo FILE` adds the conversations of a LoCoMo file, a note a
session.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeAlias

import trio

from bench.context import WHOLE, Case, Subject, generated, is_shown, judged
from bench.grep import Grep
from bench.judged import Chunk, Collection, JudgedQuery, read_collections
from bench.measures import mean
from bench.quality import add_collection_options
from bench.rankings import called
from bench.report import print_report
from bench.vaults import Vaults, vault_folder
from lithos.app import Server
from lithos.config.sections import ServerConfig

Answers: TypeAlias = Literal["full", "compact"]

#: Characters of a whole answer within which evidence is looked for.
LIMITS = (2_000, 4_000, 8_000)
#: Budgets of briefings, largest first.
BUDGETS = (4_000, 3_500, 3_000, 2_000, 1_750, 1_500, 1_000, 850, 750, 500, 350, 250)
#: Characters that count as one token.
TOKEN = 4
QUESTIONS = 150
GENERATED = ("sessions", "turns")
#: Calls whose answers are measured, by name; each with the question.
CALLS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "context 500": ("lithos_context", {"budget": 500}),
    "context 1000": ("lithos_context", {"budget": 1_000}),
    "context 2000": ("lithos_context", {"budget": 2_000}),
    "context 4000": ("lithos_context", {"budget": 4_000}),
    "search 10": ("lithos_search", {"limit": 10}),
    "retrieve 10": ("lithos_retrieve", {"limit": 10}),
    "cache_lookup": ("lithos_cache_lookup", {}),
}
#: Lists that are asked for, and their rows.
LISTS, ROWS = 5, 50
#: Notes that are written and read, and characters of each.
WRITTEN, LENGTH = 20, 500
SETTINGS: tuple[Answers, ...] = ("full", "compact")
#: Fields that are text of notes, and the headings over it.
TEXTS = frozenset(("text", "snippet", "content"))
#: Lists of rows in answers.
ROW_KEYS = ("results", "items")


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.economy", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_collection_options(parser)
    parser.set_defaults(sample=QUESTIONS)
    parser.add_argument("--generated", nargs="*", choices=GENERATED, default=GENERATED)
    parser.add_argument("--vault", type=Path, help="a folder of Markdown notes")
    parser.add_argument("--locomo", type=Path, help="a file of LoCoMo conversations (JSON)")
    parser.add_argument("--seed", type=int, default=7, help="of the generators")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=SETTINGS, help="of server.answers")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse_arguments()
    with vault_folder(options.data) as folder:
        for subject in subjects(options):
            for setting in options.settings:
                vaults = Vaults(folder, options.tier, ServerConfig(answers=setting))
                for figures in trio.run(measure, subject, vaults):
                    print_report(**figures)


def subjects(options: argparse.Namespace) -> Iterator[Subject]:
    """What is measured, in turn."""
    if options.collections is not None:
        for collection in read_collections(options.collections, options.only):
            yield judged(collection, collection.laid_out("pages").sample(options.sample))
    for name in options.generated:
        yield generated(name, options.sample, options.seed)
    if options.vault is not None:
        yield vault_subject(options.vault, options.sample, options.seed)
    if options.locomo is not None:
        yield locomo_subject(options.locomo, options.sample, options.seed)


def vault_subject(vault: Path, sample: int | None, seed: int) -> Subject:
    """The notes of a vault, asked for by their headings; nothing says which passage answers."""
    chunks: list[Chunk] = []
    asked: list[str] = []
    for path in sorted(vault.rglob("*.md")):
        if any(part.startswith(".") for part in path.relative_to(vault).parts):
            continue
        text, name = path.read_text(encoding="utf-8", errors="replace"), str(path.relative_to(vault))
        chunks.append(Chunk(name, name, text, path.stem, name))
        asked += (heading.strip() for heading in re.findall(r"(?m)^#{1,3} +(.{8,80})$", text))
    asked = sorted(set(asked))
    random.Random(seed).shuffle(asked)
    queries = tuple(JudgedQuery(str(n), text, "", {}) for n, text in enumerate(asked[:sample]))
    return Subject(Collection("vault", tuple(chunks), queries), [Case(query, ()) for query in queries], WHOLE)


def locomo_subject(file: Path, sample: int | None, seed: int) -> Subject:
    """LoCoMo: a note a session, questions whose evidence is named; adversarial ones are left out."""
    chunks: list[Chunk] = []
    cases: list[Case] = []
    for number, each in enumerate(json.loads(file.read_text(encoding="utf-8"))):
        said: dict[str, str] = {}
        talk = each["conversation"]
        for key in (name for name in talk if re.fullmatch(r"session_\d+", name)):
            lines = [f"{turn['speaker']}: {turn['text']}" for turn in talk[key]]
            said |= {turn["dia_id"]: turn["text"] for turn in talk[key]}
            path = f"{number:02}/{key}.md"
            text = f"Date: {talk.get(f'{key}_date_time', '')}\n\n" + "\n\n".join(lines)
            chunks.append(Chunk(path, path, text, f"{number:02} {key}", path))
        for place, asked in enumerate(each["qa"]):
            evidence = [said[one] for one in asked.get("evidence", ()) if one in said]
            if evidence and asked.get("category") != 5:
                cases.append(Case(JudgedQuery(f"{number}-{place}", asked["question"], "", {}), [evidence]))
    random.Random(seed).shuffle(cases)
    cases = cases[:sample]
    queries = tuple(case.query for case in cases)
    return Subject(Collection("locomo", tuple(chunks), queries), cases, WHOLE)


async def measure(subject: Subject, vaults: Vaults) -> list[dict[str, Any]]:
    """Figures of all calls, and of the evidence that they and the reference show."""
    figures: list[dict[str, Any]] = []
    async with vaults.serving(subject.collection) as server:
        for name in CALLS:
            figures.append(await _costs(server, subject, name))
        if any(case.answers for case in subject.cases):
            figures += await _evidence(server, subject)
        figures.append(await _list_costs(server, subject))
        figures += await _note_costs(server, subject)
    return [{"setting": vaults.server.answers} | each for each in figures]


def as_sent(answer: Mapping[str, object]) -> str:
    """The text of an answer that a client receives."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def note_characters(answer: object) -> int:
    """Characters of an answer that are text of notes, as they are sent."""
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
    answers = [await called(server, tool, query=case.query.text, **arguments) for case in subject.cases]
    figures = _row(subject, name, answers)
    if "budget" in arguments:
        most = max(math.ceil(len(as_sent(answer)) / TOKEN) for answer in answers)
        figures["most_of_budget"] = round(most / arguments["budget"], 2)
    return figures


async def _list_costs(server: Server, subject: Subject) -> dict[str, Any]:
    pages = [await called(server, "lithos_list", limit=ROWS, offset=ROWS * page) for page in range(LISTS)]
    filled = [page for page in pages if page["items"]]
    return _row(subject, f"list {ROWS}", filled)


async def _note_costs(server: Server, subject: Subject) -> list[dict[str, Any]]:
    """What it costs to write notes of some 500 characters, and to read them."""
    rng = random.Random(0)
    known = sorted({word for chunk in subject.collection.chunks[:200] for word in chunk.text.split()})
    written, read = list[Mapping[str, object]](), list[Mapping[str, object]]()
    rng.shuffle(known)
    for number in range(WRITTEN):
        # No word is in two notes where the vocabulary is large enough, so that none of them is `similar`.
        text = " ".join(known[number::WRITTEN] * LENGTH)[:LENGTH].strip()
        answer = await called(
            server, "lithos_write", title=f"Economy {number}", content=text, agent="bench", path="economy"
        )
        written.append(answer)
        read.append(await called(server, "lithos_read", id=answer["id"]))
    # The median: now and then a write has more to say, for example that an index is behind.
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
    for case in subject.cases:
        answers = {
            "context": [
                await called(server, "lithos_context", query=case.query.text, budget=budget)
                for budget in BUDGETS
            ],
            "search": [await called(server, "lithos_search", query=case.query.text, limit=10)],
        }
        for limit in LIMITS:
            for way, some in answers.items():
                text = _fitting([as_sent(answer) for answer in some], limit)
                shown[way, limit].append(float(is_shown(case, text, subject.needed)))
            text = grep.find(case.query.text, limit)
            shown["grep", limit].append(float(is_shown(case, text, subject.needed)))
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
    """The first of these answers that is within a limit, else the last one, cut; escapes undone."""
    text = next((answer for answer in answers if len(answer) <= limit), answers[-1][:limit])
    return text.replace("\\n", "\n").replace('\\"', '"')


if __name__ == "__main__":
    main()
