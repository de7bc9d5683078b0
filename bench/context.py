"""Whether the passage that answers is in the briefing: `lithos_context` beside rows and whole notes.

`python -m bench.context COLLECTIONS --data DIR >> RESULTS` measures shares of questions whose answering
passage is in the text of `lithos_context` at 500 to 4,000 tokens, beside what `lithos_search` gives
within as many: its rows (JSON, as many as fit), the same rows as titles and snippets alone, and whole notes
in rank order, the last one cut. Tokens are counted as `lithos_context` counts them. Each result is a JSON
line; differences have 95 % intervals (paired bootstrap). `--speed` measures instead how long a call takes,
for one client in this process.

Collections: the judged ones of a folder (`bench/judged.py`), as whole pages with and without titles;
generated notes of projects (`bench/projects.py`); and generated conversations, a note per session, per
five sessions (`joined`) and per turn (`bench/dialogues.py`). Judged collections say which document
answers, not where: the answering passage is the chunk of the document (of one of more than 1,000
characters: its 500) that shares most of the query's words, by their idf; of equal ones the first. With
`--anywhere` it is any passage, by chance: what answers and has no word of the question, at its worst. It
counts as shown when at least half of its runs of five words are there, since a snippet shows a part.
Generated answers are sentences and count when every such run is there, of all turns that are needed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import trio
from attrs import evolve, frozen

from bench.conversations import as_collection
from bench.dialogues import generate_conversations
from bench.judged import Chunk, Collection, JudgedQuery, read_collections
from bench.measures import mean, paired_difference
from bench.projects import generate_projects
from bench.quality import add_collection_options
from bench.rankings import called
from bench.report import print_report
from bench.vaults import Vaults, vault_folder
from lithos.app import Server
from lithos.core.context.tokens import Count, count_with, fitting_length
from lithos.core.text.analysis import FUNCTION_WORDS, fold, words
from lithos.stores.indexes.tokenizer import load_pieces

BUDGETS = (500, 1_000, 2_000, 4_000)
WAYS = ("context", "rows", "snippets", "notes")
GENERATED = ("projects", "sessions", "joined", "turns")
LAYOUTS = ("pages", "titled")
QUESTIONS = 300
#: Rows that the search is asked for: more than any budget holds.
ROWS = 50
RUN = 5
#: Share of the runs of a passage that have to be shown: of a judged chunk, and of a sentence.
PART, WHOLE = 0.5, 1.0
#: Characters of an answering passage, and of a judged chunk that is one as it is.
PASSAGE, LONGEST = 500, 1_000
#: Characters of one that is drawn by chance, at least.
LEAST = 60
#: Sessions of a long note; conversations have four times as many.
JOINED = 5
#: Characters by which words of queries and chunks are compared.
_STEM = 6


@frozen
class Case:
    """A question; it is answered by one of several lists of passages, all of which have to be shown."""

    query: JudgedQuery
    answers: Sequence[Sequence[str]]


@frozen
class Subject:
    """A collection with what answers each of its questions."""

    collection: Collection
    cases: Sequence[Case]
    needed: float


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.context", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_collection_options(parser)
    parser.set_defaults(sample=QUESTIONS)
    parser.add_argument("--generated", nargs="*", choices=GENERATED, default=GENERATED)
    parser.add_argument("--layouts", nargs="*", choices=LAYOUTS, default=LAYOUTS)
    parser.add_argument("--budgets", nargs="+", type=int, default=BUDGETS)
    parser.add_argument("--anywhere", action="store_true", help="judged documents answer by any passage")
    parser.add_argument("--seed", type=int, default=7, help="of the generators")
    parser.add_argument("--speed", action="store_true", help="seconds of a call instead")
    return parser.parse_args(arguments)


def main() -> None:
    options = parse_arguments()
    with vault_folder(options.data) as folder:
        vaults = Vaults(folder, options.tier)
        for subject in subjects(options):
            run = measure_speed if options.speed else measure
            trio.run(run, subject, vaults, options.budgets)


def subjects(options: argparse.Namespace) -> Iterable[Subject]:
    """What is measured, in turn."""
    if options.layouts:
        for collection in read_collections(options.collections, options.only):
            seen: set[str] = set()
            for layout in options.layouts:
                laid_out = collection.laid_out(layout)
                if laid_out.fingerprint() not in seen:
                    yield judged(collection, laid_out.sample(options.sample), anywhere=options.anywhere)
                seen.add(laid_out.fingerprint())
    for name in options.generated:
        yield generated(name, options.sample, options.seed)


def judged(collection: Collection, laid_out: Collection, *, anywhere: bool = False) -> Subject:
    """A judged collection; the passages are those of the collection as it came."""
    chunks: dict[str, list[str]] = defaultdict(list)
    for chunk in collection.chunks:
        chunks[chunk.doc] += passages_of(chunk.text)
    frequency = Counter(stem for chunk in collection.chunks for stem in set(_stems(chunk.text)))

    def answer(query: JudgedQuery, doc: str) -> str:
        if anywhere:
            of_doc = [text for text in chunks[doc] if len(text) >= LEAST] or chunks[doc]
            return random.Random(f"{query.id} {doc}").choice(of_doc)
        return _best(query.text, chunks[doc], frequency, len(collection.chunks))

    cases = [Case(query, [[answer(query, doc)] for doc in query.grades]) for query in laid_out.queries]
    return Subject(evolve(laid_out, name=f"{laid_out.name}{'-anywhere' * anywhere}"), cases, PART)


def passages_of(text: str) -> list[str]:
    """A chunk of about 500 characters as it is, a longer one in sentences packed to as many."""
    if len(text) <= LONGEST:
        return [text]
    packed: list[str] = []
    for sentence in re.split(r"(?<=[.!?]) +", text):
        if packed and len(packed[-1]) + len(sentence) < PASSAGE:
            packed[-1] += f" {sentence}"
        else:
            packed.append(sentence)
    return packed


def _best(query: str, chunks: Sequence[str], frequency: Mapping[str, int], total: int) -> str:
    wanted = {stem: math.log(1 + total / (1 + frequency.get(stem, 0))) for stem in set(_stems(query))}
    shared = [sum(wanted[stem] for stem in wanted.keys() & set(_stems(chunk))) for chunk in chunks]
    return chunks[shared.index(max(shared))]


def _stems(text: str) -> list[str]:
    return [word[:_STEM] for _, word in words(fold(text)) if word not in FUNCTION_WORDS]


def generated(name: str, sample: int | None, seed: int) -> Subject:
    """A generated collection by name."""
    if name == "projects":
        notes, facts = generate_projects(seed)
        chunks = tuple(Chunk(note.path, note.path, note.text, note.title, note.path) for note in notes)
        random.Random(seed).shuffle(facts)
        queries = [JudgedQuery(fact.id, fact.question, "", {}) for fact in facts[:sample]]
        answers = {fact.id: [[fact.sentence]] for fact in facts}
        return Subject(
            Collection(name, chunks, tuple(queries)), [Case(q, answers[q.id]) for q in queries], WHOLE
        )
    conversations = generate_conversations(seed=seed)
    collection = as_collection(conversations, "sessions" if name == "joined" else name)
    if name == "joined":
        collection = evolve(collection, name=f"{collection.name}-joined", chunks=_joined(collection.chunks))
    texts = {turn.id: turn.text for one in conversations for turn in one.turns}
    turns = {question.id: question.turns for one in conversations for question in one.questions}
    queries = list(collection.queries)
    random.Random(seed).shuffle(queries)
    cases = [Case(query, [[texts[turn] for turn in turns[query.id]]]) for query in queries[:sample]]
    return Subject(collection, cases, WHOLE)


def _joined(sessions: Sequence[Chunk]) -> tuple[Chunk, ...]:
    """Every five sessions of two people as one long note, under the title of the first."""
    some = (sessions[start : start + JOINED] for start in range(0, len(sessions), JOINED))
    return tuple(evolve(each[0], text="\n\n".join(one.text for one in each)) for each in some)


async def measure(subject: Subject, vaults: Vaults, budgets: Sequence[int]) -> None:
    """Ask every question in every way, and print a line for each budget."""
    count = count_with(load_pieces())
    texts = {chunk.note_id: chunk.text for chunk in subject.collection.chunks}
    hits: dict[tuple[str, int], list[float]] = defaultdict(list)
    used: dict[int, list[int]] = defaultdict(list)
    async with vaults.serving(subject.collection) as server:
        for case in subject.cases:
            found = await called(server, "lithos_search", query=case.query.text, limit=ROWS)
            rows = found["results"]
            assert isinstance(rows, list)
            for budget in budgets:
                briefing = await called(server, "lithos_context", query=case.query.text, budget=budget)
                text = str(briefing["text"])
                tokens = count(text)
                if tokens > budget:
                    raise RuntimeError(f"{tokens} tokens of {budget}, told as {briefing['tokens']}")
                used[budget].append(tokens)
                shown_by = {
                    "context": text,
                    "rows": rows_within(rows, budget, count),
                    "snippets": snippets_within(rows, budget, count),
                    "notes": notes_within(
                        [f"# {named(row)}\n\n{texts[row['id']]}" for row in rows], budget, count
                    ),
                }
                for way, shown in shown_by.items():
                    hits[way, budget].append(float(is_shown(case, shown, subject.needed)))
    for budget in budgets:
        ours = hits["context", budget]
        print_report(
            "context",
            collection=subject.collection.name,
            tier=vaults.tier,
            budget=budget,
            questions=len(ours),
            tokens=round(sum(used[budget]) / len(ours)),
            shares={way: mean(hits[way, budget]) for way in WAYS},
            over={way: paired_difference(ours, hits[way, budget]) for way in WAYS[1:]},
        )


def rows_within(rows: Sequence[Mapping[str, object]], budget: int, count: Count) -> str:
    """As many of the first rows, as JSON, as fit; the answer's frame is not counted."""
    return _first([json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows], budget, count)


def snippets_within(rows: Sequence[Mapping[str, object]], budget: int, count: Count) -> str:
    """The same of titles, paths and snippets."""
    return _first([f"{named(row)}\n{row['snippet']}\n" for row in rows], budget, count)


def named(row: Mapping[str, object]) -> str:
    """What note it is, so that it can be cited and read."""
    return f"{row['title']} ({row['path']})"


def _first(parts: Sequence[str], budget: int, count: Count) -> str:
    shown: list[str] = []
    for part in parts:
        budget -= count(part) + 1
        if budget < 0:
            break
        shown.append(part.replace("\\n", " "))
    return "\n".join(shown)


def notes_within(notes: Sequence[str], budget: int, count: Count) -> str:
    """Whole notes in rank order; the last one is cut."""
    shown: list[str] = []
    for note in notes:
        tokens = count(note)
        if tokens > budget:
            shown.append(note[: fitting_length(note, budget, count)])
            break
        shown.append(note)
        budget -= tokens + 1
    return "\n\n".join(shown)


def is_shown(case: Case, text: str, needed: float) -> bool:
    """Whether a text has all passages of one of the answers."""
    there = runs(text)
    return any(
        all(len(wanted & there) >= needed * len(wanted) for wanted in map(runs, answer))
        for answer in case.answers
    )


def runs(text: str) -> set[tuple[str, ...]]:
    """The runs of five words of a text; of a shorter one, and of each beginning of it, itself."""
    found = [word for _, word in words(fold(text))]
    if len(found) <= RUN:
        return {tuple(found)}
    return {tuple(found[start : start + RUN]) for start in range(len(found) - RUN + 1)}


async def measure_speed(subject: Subject, vaults: Vaults, budgets: Sequence[int]) -> None:
    """Milliseconds of a call, each question asked once after a round of others."""
    async with vaults.serving(subject.collection) as server:
        await _seconds(server, subject.cases[:20], budgets[0])
        for budget in budgets:
            took = sorted(await _seconds(server, subject.cases, budget))
            print_report(
                "context_speed",
                collection=subject.collection.name,
                budget=budget,
                calls=len(took),
                p50_ms=round(1_000 * took[len(took) // 2], 1),
                p95_ms=round(1_000 * took[int(len(took) * 0.95)], 1),
            )


async def _seconds(server: Server, cases: Sequence[Case], budget: int) -> list[float]:
    took: list[float] = []
    for case in cases:
        began = time.perf_counter()
        await called(server, "lithos_context", query=case.query.text, budget=budget)
        took.append(time.perf_counter() - began)
    return took


if __name__ == "__main__":
    main()
