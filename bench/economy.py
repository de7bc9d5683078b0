"""What an answer costs the agent: characters returned, how many of them are text of notes, evidence shown.

`python -m bench.economy COLLECTIONS --vault DIR --data DIR` asks the tools that search, reads some notes,
and counts the characters of each whole answer: the compact JSON that the client receives as text. No
language model takes part, and the same notes give the same figures. Each result is a JSON line:

* `economy`: for a tool and its arguments, the mean characters of an answer, and the share of them that is
  text of notes with the headings over it (`text`, `snippet`, `content`). For briefings also the largest
  ratio of the tokens of a whole answer (four characters each) to the budget.
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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import trio
from attrs import frozen

from bench.context import WHOLE, Case, Subject, generated, is_shown, judged
from bench.judged import Chunk, Collection, JudgedQuery, read_collections
from bench.measures import mean
from bench.quality import add_collection_options
from bench.rankings import called
from bench.report import print_report
from bench.vaults import Vaults, vault_folder
from lithos.app import Server
from lithos.core.text.analysis import FUNCTION_WORDS, fold, words

#: Characters of a whole answer within which evidence is looked for.
LIMITS = (2_000, 4_000, 8_000)
#: Budgets of briefings, largest first.
BUDGETS = (4_000, 3_000, 2_000, 1_500, 1_000, 750, 500, 350, 250)
#: Characters that count as one token.
TOKEN = 4
QUESTIONS = 150
GENERATED = ("sessions", "turns")
#: Calls whose answers are measured, by name; `{q}` stands for the question.
CALLS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "context 500": ("lithos_context", {"budget": 500}),
    "context 1000": ("lithos_context", {"budget": 1_000}),
    "context 2000": ("lithos_context", {"budget": 2_000}),
    "context 4000": ("lithos_context", {"budget": 4_000}),
    "search 10": ("lithos_search", {"limit": 10}),
    "retrieve 10": ("lithos_retrieve", {"limit": 10}),
    "cache_lookup": ("lithos_cache_lookup", {}),
}
#: Fields that are text of notes, and the headings over it.
TEXTS = frozenset(("text", "snippet", "content"))
#: Lines of a file that the reference shows, and lines around each.
LINES, AROUND = 3, 2


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
    return parser.parse_args(arguments)


def main() -> None:
    options = parse_arguments()
    with vault_folder(options.data) as folder:
        vaults = Vaults(folder, options.tier)
        for subject in subjects(options):
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
        figures.append(await _read_costs(server, subject))
        if any(case.answers for case in subject.cases):
            figures += await _evidence(server, subject)
    return figures


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
    whole, texts, ratio = list[int](), list[int](), 0.0
    for case in subject.cases:
        answer = await called(server, tool, query=case.query.text, **arguments)
        sent = as_sent(answer)
        whole.append(len(sent))
        texts.append(note_characters(answer))
        if "budget" in arguments:
            ratio = max(ratio, math.ceil(len(sent) / TOKEN) / arguments["budget"])
    budget = {"most_of_budget": round(ratio, 2)} if "budget" in arguments else {}
    return _row(subject, name, whole, texts) | budget


async def _read_costs(server: Server, subject: Subject) -> dict[str, Any]:
    """Reads of short notes, as far as there are some; their own length is given beside."""
    short = [chunk for chunk in subject.collection.chunks if len(chunk.text) <= 800][:100]
    whole, texts = list[int](), list[int]()
    for chunk in short or subject.collection.chunks[:20]:
        answer = await called(server, "lithos_read", id=chunk.note_id)
        whole.append(len(as_sent(answer)))
        texts.append(note_characters(answer))
    return _row(subject, "read", whole, texts)


def _row(subject: Subject, name: str, whole: Sequence[int], texts: Sequence[int]) -> dict[str, Any]:
    return {
        "bench": "economy",
        "collection": subject.collection.name,
        "call": name,
        "answers": len(whole),
        "characters": round(sum(whole) / len(whole)),
        "of_notes": round(100 * sum(texts) / sum(whole), 1),
    }


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


@frozen
class Grep:
    """What an agent with `grep` sees: the best lines of each file, and lines around them."""

    files: Sequence[tuple[str, Sequence[str], Sequence[frozenset[str]]]]
    frequency: Mapping[str, int]

    @classmethod
    def over(cls, chunks: Iterable[Chunk]) -> Grep:
        """The notes as files, their text as lines of at most a paragraph."""
        files = []
        for chunk in chunks:
            lines = [f"# {chunk.title}", *chunk.text.splitlines()]
            files.append((chunk.path or chunk.note_id, lines, [_words(line) for line in lines]))
        frequency = Counter(word for _, _, each in files for word in frozenset[str]().union(*each))
        return cls(files, frequency)

    def find(self, query: str, limit: int) -> str:
        """At most `limit` characters: files with the heaviest words first, three lines of each."""
        wanted = {word: math.log(1 + len(self.files) / self.frequency[word]) for word in _words(query)
                  if word in self.frequency}  # fmt: skip
        ranked: list[tuple[float, int, list[int]]] = []
        for number, (_, _, each) in enumerate(self.files):
            weights = [sum(wanted[word] for word in words & wanted.keys()) for words in each]
            best = sorted(range(len(weights)), key=lambda line: (-weights[line], line))[:LINES]
            best = [line for line in best if weights[line] > 0]
            if best:
                ranked.append((-sum(weights[line] for line in best), number, best))
        shown: list[str] = []
        left = limit
        for _, number, best in sorted(ranked):
            path, lines, _ = self.files[number]
            around = sorted({n for line in best for n in range(line - AROUND, line + AROUND + 1)})
            part = [path, *(f"{n + 1}: {lines[n]}" for n in around if 0 <= n < len(lines))]
            text = "\n".join(part)[:left]
            shown.append(text)
            left -= len(text) + 1
            if left <= 0:
                break
        return "\n".join(shown)


def _words(text: str) -> frozenset[str]:
    return frozenset(word for _, word in words(fold(text)) if word not in FUNCTION_WORDS)


if __name__ == "__main__":
    main()
