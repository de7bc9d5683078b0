"""Benchmark of reach: the first turn of each client, and the hook at the prompt.

`python -m bench.reach [COLLECTIONS] [--vault DIR] [--data DIR]` prints JSON lines and tables. First turns
(`--turns`): the visible text of each client, its tokens, and whether it has the trigger
(`bench/reach_turns.py`).

Prompts: the hook runs against a server in this process, with generated project notes, conversations and code,
the folder of `--vault`, and judged collections. `silent` is the percentage of unrelated prompts without a
passage, `speaks` that of related prompts with one, and `right` the percentage of the latter with a passage of
a note that answers. Unrelated prompts are generated, and are the questions of all other subjects. Related
prompts are generated, and are judged questions in longer prompts (`bench/reach_prompts.py`).

`--languages` measures the notes of twelve languages instead (`bench/reach_languages.py`). `--only` then names
languages.

`--before` uses strong rows of an ordinary `lithos_search` instead. `--fit` prints the coefficients for
`lithos.search.ranking.prompt_match` that are fitted to all prompts.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import attrs
import numpy as np
import trio
from attrs import define, field, frozen

from bench.conversations import as_collection
from bench.dialogues import generate_conversations
from bench.judged import Collection, read_collections
from bench.kinds import functions, notes_of, told
from bench.logistic import fit_logistic
from bench.quality import add_collection_options, distinct_layouts
from bench.reach_languages import RELATED, LanguagePart, language_parts
from bench.reach_notes import project_notes
from bench.reach_prompts import Prompt, framed, related, unrelated
from bench.reach_turns import report_turns
from bench.report import print_report, render_table
from bench.vaults import Vaults, vault_folder
from lithos.app.server import Server
from lithos.clients.hooks.payload import Payload
from lithos.clients.hooks.prompting import MOST_PASSAGES, question_of, run
from lithos.kernel.values.principals import OWNER
from lithos.search.embedding.tokenizer import load_pieces
from lithos.search.ranking.prompt_match import PROMPT_CALIBRATIONS
from lithos.search.service.prompts import PromptRequest, Prompts
from lithos.text.words.tokens import count_with

#: Related prompts, unrelated generated prompts, and questions of each other part that are unrelated prompts.
PROMPTS, FOREIGN = 500, 100
#: Kinds of prompts that the notes of a part may really be about: unrelated code may be in code.
OWN_SUBJECTS: Final[Mapping[str, tuple[str, ...]]] = {"code": ("task", "paste", "trace")}


@frozen
class Part:
    """Notes, and the prompts that they answer."""

    notes: Collection
    related: Sequence[Prompt]


@frozen
class Outcome:
    """A prompt and the documents of the passages that the hook gave."""

    prompt: Prompt
    given: frozenset[str]
    tokens: int

    @property
    def is_right(self) -> bool:
        return not self.given.isdisjoint(self.prompt.answers)


@define
class InProcess:
    """The server in this process as the owner that the hook calls from its thread."""

    server: Server
    is_before: bool
    rows: Sequence[Mapping[str, Any]] = ()
    until: float = field(factory=lambda: time.monotonic() + 60)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if self.is_before:
            arguments = {"query": arguments["query"], "limit": MOST_PASSAGES}
        answer: Any = trio.from_thread.run(self.server.tools.call, tool, arguments, OWNER)
        answer = attrs.asdict(answer) if attrs.has(type(answer)) else dict(answer)
        rows = [dict(row) for row in answer["results"]]
        if self.is_before:
            rows = [row | {"passage": f"{number:08}"} for number, row in enumerate(rows)]
        self.rows = [row for row in rows if row["match"] == "strong"]
        return {"results": rows}


def parts(options: argparse.Namespace) -> Iterator[Part]:
    """Yield all parts. Questions of judged collections are put into longer prompts."""
    seed = options.seed
    projects, asked = project_notes(seed)
    yield Part(projects, related(projects, asked, options.prompts, seed))
    if options.vault is not None:
        vault = notes_of(options.vault)
        yield Part(vault, related(vault, [], options.prompts, seed))
    for collection in read_collections(options.collections, []) if options.collections else ():
        for _, laid_out in distinct_layouts(collection, ("passages", "titled")):
            yield _judged(laid_out, options)
    dialogues = generate_conversations()
    for collection in (told(dialogues), as_collection(dialogues, "sessions"), functions()):
        yield _judged(collection, options)


def _judged(collection: Collection, options: argparse.Namespace) -> Part:
    rng = random.Random(f"judged {options.seed}")
    queries = rng.sample(collection.queries, min(options.prompts, len(collection.queries)))
    prompts = [Prompt("related", framed(rng, query.text), frozenset(query.grades)) for query in queries]
    return Part(collection, prompts)


def unrelated_of(part: Part, everything: Sequence[Part], options: argparse.Namespace) -> list[Prompt]:
    """Return generated prompts and related prompts of other parts, without those of the same subjects."""
    name = part.notes.name
    found = unrelated(part.notes, options.prompts, options.seed)
    for other in everything:
        if _subject(other.notes.name) != _subject(name):
            foreign = other.related[:FOREIGN]
            found += [Prompt(f"of {_subject(other.notes.name)}", each.text) for each in foreign]
    return [each for each in found if each.kind not in OWN_SUBJECTS.get(name, ())]


def _subject(name: str) -> str:
    """Return the subject of a collection: layouts, and conversations with their facts, have the same one."""
    return "conversations" if "dialogue" in name else name.partition("-")[0]


async def hook_outcomes(
    server: Server, notes: Collection, prompts: Sequence[Prompt], *, is_before: bool
) -> list[Outcome]:
    """Run the hook on each prompt, each in a session of its own."""
    documents, count = notes.documents(), count_with(load_pieces())
    found = []
    for number, prompt in enumerate(prompts):
        owner = InProcess(server, is_before)
        payload = Payload(session=f"{notes.name} {number}", prompt=prompt.text)
        # The hook uses only `call` and `until` of its owner.
        text = await trio.to_thread.run_sync(run, payload, cast(Any, owner), {"agent": "bench"})
        given = frozenset(documents[row["id"]] for row in owner.rows) if text else frozenset[str]()
        found.append(Outcome(prompt, given, count(text)))
    return found


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the percentages that the docstring of the module defines, and the maximum of tokens."""
    about = [each for each in outcomes if each.prompt.answers]
    spoken = [each for each in about if each.given]
    rest = [each for each in outcomes if not each.prompt.answers]
    by_kind, wrong = Counter(each.prompt.kind for each in rest), Counter[str]()
    wrong.update(each.prompt.kind for each in rest if each.given)
    return {
        "unrelated": len(rest),
        "silent": _percent(sum(not each.given for each in rest), len(rest)),
        "related": len(about),
        "speaks": _percent(len(spoken), len(about)),
        "right": _percent(sum(each.is_right for each in spoken), len(spoken)),
        "most_tokens": max((each.tokens for each in outcomes), default=0),
        "silent_by_kind": {kind: _percent(by_kind[kind] - wrong[kind], by_kind[kind]) for kind in by_kind},
    }


def _percent(some: int, of: int) -> float:
    return round(100 * some / max(1, of), 1)


async def fit_rows(server: Server, notes: Collection, prompts: Sequence[Prompt]) -> list[tuple[Any, bool]]:
    """Return the features of the judged notes of all prompts, and whether the note answers the prompt."""
    documents, rows = notes.documents(), []
    for prompt in prompts:
        question = question_of(prompt.text)
        for each in await server.get(Prompts).judge(PromptRequest(query=question)) if question else ():
            rows.append((attrs.asdict(each.features), documents[each.entry.note.id] in prompt.answers))
    return rows


def report_fit(rows: Mapping[str, Sequence[tuple[Any, bool]]], tier: str) -> None:
    """Print the coefficients of a fit in which each part has the same weight."""
    rule = PROMPT_CALIBRATIONS[tier]
    everything = [row for some in rows.values() for row in some]
    matrix = np.array([[row[name] for name in rule.weights] for row, _ in everything])
    is_right = np.array([right for _, right in everything])
    counts = np.concatenate([np.full(len(some), 1_000 / len(some)) for some in rows.values()])
    print(fit_logistic(tuple(rule.weights), matrix, is_right, 1.0, counts).as_code(tier, rule.threshold))


async def _measure(part: Part, prompts: Sequence[Prompt], vaults: Vaults, options: argparse.Namespace) -> Any:
    async with vaults.serving(part.notes) as server:
        if options.turns and part.notes.name == "projects":
            await report_turns(server)
        if options.fit:
            return await fit_rows(server, part.notes, prompts)
        return figures(await hook_outcomes(server, part.notes, prompts, is_before=options.before))


async def _measure_language(part: LanguagePart, vaults: Vaults, options: argparse.Namespace) -> list[Outcome]:
    async with vaults.serving(part.notes) as server:
        return await hook_outcomes(server, part.notes, part.prompts, is_before=options.before)


def measure_languages(vaults: Vaults, options: argparse.Namespace) -> None:
    """Print the figures of each language. The prompts to its vaults count together."""
    found: dict[str, list[Outcome]] = defaultdict(list)
    for part in language_parts(options.only):
        found[part.language] += trio.run(_measure_language, part, vaults, options)
    for language, outcomes in found.items():
        print_report("reach", language=language, tier=options.tier, **figures(outcomes))
    kinds = list(dict.fromkeys(each.prompt.kind for outcomes in found.values() for each in outcomes))
    head, rows = ["notes"], [[language] for language in found]
    for kind in kinds:
        keys = ("speaks", "right") if kind in RELATED else ("silent",)
        head += [f"{kind}: {key}" for key in keys]
        for row, outcomes in zip(rows, found.values(), strict=True):
            some = figures([each for each in outcomes if each.prompt.kind == kind])
            row += [str(some[key]) if some["related"] + some["unrelated"] else "-" for key in keys]
    print(render_table(head, rows))


def main() -> None:
    options = parse_arguments()
    with vault_folder(options.data) as folder, tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        measure = measure_languages if options.languages else measure_parts
        measure(Vaults(folder, options.tier), options)


def measure_parts(vaults: Vaults, options: argparse.Namespace) -> None:
    """Print the figures of each part, or fitted coefficients."""
    everything, measured = list(parts(options)), dict[str, Any]()
    for part in everything:
        name = part.notes.name
        if not options.only or name in options.only:
            prompts = [*unrelated_of(part, everything, options), *part.related]
            measured[name] = trio.run(_measure, part, prompts, vaults, options)
            if not options.fit:
                print_report("reach", collection=name, tier=options.tier, **measured[name])
    if options.fit:
        report_fit(measured, options.tier)
        return
    head = ["silent", "speaks", "right", "most_tokens"]
    rows = [[name, *(str(found[key]) for key in head)] for name, found in measured.items()]
    print(render_table(["notes", *head], rows))


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.reach",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_collection_options(parser)
    parser.add_argument("--vault", type=Path, help="Markdown folder to use as a further part")
    parser.add_argument("--prompts", type=int, default=PROMPTS, help="prompts of each kind")
    parser.add_argument("--seed", type=int, default=7, help="seed of the prompts and of the project notes")
    parser.add_argument("--turns", action="store_true", help="also print the first turns of the clients")
    parser.add_argument("--languages", action="store_true", help="measure the notes of twelve languages")
    parser.add_argument("--before", action="store_true", help="use strong rows of an ordinary search")
    parser.add_argument("--fit", action="store_true", help="print the fitted coefficients")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
