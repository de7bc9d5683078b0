"""What lies beside the notes: how well it is found, what notes lose by it, what writes wait for it.

`python -m bench.attachments` makes the vault of `bench.attachments_vault` with notes beside it, serves it in
this process, and asks its questions twice: of attachments alone (`kinds: ["attachment"]`) and of everything.
A row is right if it is of the file and the place (page, card, element, or part of some lines) that answers.
Per layout and kind of question: recall at 10, recall of the file at 10, and how often the first row is right,
all in per cent. `--misses` tells the questions whose place was not among ten rows.

`--notes [COLLECTIONS]` and `--writes` measure the rest instead (`bench/attachments_beside.py`).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import trio
from attrs import frozen

from bench.attachments_beside import BesideOptions, attachments_config, measure_notes, measure_writes
from bench.attachments_facts import KINDS
from bench.attachments_vault import ASKED, Made, Question, generate
from bench.measures import DEPTH, mean
from bench.rankings import called
from bench.report import print_report
from lithos.app import Server, running_server
from lithos.core.attachments.plain import PART_LINES

#: What is asked for: rows of attachments, or of everything.
WAYS: Final = ("alone", "mixed")
#: Per cent of the questions whose place is to be among ten rows of attachments.
AIM: Final = 90.0


@frozen
class Found:
    """Where the answer of one question stands among ten rows, from 1; None where it does not."""

    place: int | None
    file: int | None

    @classmethod
    def among(cls, rows: Sequence[Mapping[str, Any]], question: Question) -> Found:
        """The first row of the place, and the first one of the file.

        A drawing in Markdown is a note as well; its elements are not shown beside it, so it stands for them.
        """
        files = [number for number, row in enumerate(rows, 1) if row["path"] == question.path]
        places = [number for number in files if _tells(rows[number - 1], question)]
        return cls(next(iter(places), None), next(iter(files), None))


def is_place(place: str, question: Question) -> bool:
    """Whether a row's place is the one that answers; of lines it is where a part of them begins."""
    if question.layout != "lines":
        return place == question.place
    first = int(place.partition(":")[0])
    return 0 <= int(question.place) - first < PART_LINES


def _tells(row: Mapping[str, Any], question: Question) -> bool:
    return row.get("kind") != "attachment" or is_place(str(row["place"]), question)


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    given = os.environ.get("LITHOS_EVAL", "")
    parser = argparse.ArgumentParser(
        prog="python -m bench.attachments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=7, help="of the vault")
    parser.add_argument("--corpus", type=int, default=300, help="notes of the corpus beside the attachments")
    parser.add_argument("--misses", action="store_true", help="tell the questions that were not answered")
    parser.add_argument(
        "--notes",
        type=Path,
        nargs="?",
        const=Path(given) if given else None,
        default=False,
        metavar="COLLECTIONS",
        help="rankings of notes in these judged collections (default: $LITHOS_EVAL), with attachments beside",
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these collections only")
    parser.add_argument("--sample", type=int, metavar="N", help="only N queries of each collection")
    parser.add_argument("--writes", action="store_true", help="writes while PDF pages are extracted")
    parser.add_argument("--pages", type=int, default=1_000, help="of PDF, in each round of --writes")
    parser.add_argument("--rounds", type=int, default=3, help="of --writes")
    options = parser.parse_args(arguments)
    if options.notes is None:
        parser.error("--notes wants a folder of collections, or LITHOS_EVAL")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_arguments(arguments)
    beside = BesideOptions(options.seed, options.pages, options.rounds, options.sample)
    if options.notes:
        trio.run(measure_notes, options.notes, options.only, beside)
    if options.writes:
        trio.run(measure_writes, beside)
    if not options.notes and not options.writes:
        trio.run(_measure, options)


async def _measure(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="lithos-attachments-") as work:
        vault = Path(work) / "vault"
        made = generate(vault, seed=options.seed, notes=options.corpus)
        async with running_server(attachments_config(Path(work) / "data", vault)) as server:
            await server.searchable()
            began = trio.current_time()
            await server.actors.attaching.caught_up()
            waited = trio.current_time() - began
            found = {way: await ask(server, made.questions, way) for way in WAYS}
    _tell(made, found, options, waited)


async def ask(server: Server, questions: Sequence[Question], way: str) -> dict[str, Found]:
    """Ask all questions; where the answers stand, by question id."""
    asked = {"kinds": ["attachment"]} if way == "alone" else {}
    found = {}
    for question in questions:
        answer = await called(server, "lithos_search", query=question.text, limit=DEPTH, **asked)
        rows: Any = answer["results"]
        found[question.id] = Found.among(rows, question)
    return found


def groups(questions: Sequence[Question]) -> Iterator[tuple[str, str, list[Question]]]:
    """Layout, kind and the questions of both; then those of each layout, of each kind, and all."""
    for layout in (*ASKED, "all"):
        for kind in (*KINDS, "all"):
            yield (
                layout,
                kind,
                [each for each in questions if layout in (each.layout, "all") and kind in (each.kind, "all")],
            )


def figures(found: Mapping[str, Found], questions: Sequence[Question]) -> dict[str, float]:
    """Per cent of the questions: place among ten rows, file among ten rows, place in the first row."""
    each = [found[question.id] for question in questions]
    return {
        "recall_10": mean([float(one.place is not None) for one in each]),
        "file_10": mean([float(one.file is not None) for one in each]),
        "first": mean([float(one.place == 1) for one in each]),
    }


def _tell(
    made: Made, found: Mapping[str, Mapping[str, Found]], options: argparse.Namespace, waited: float
) -> None:
    print(
        "| layout | kind | questions | recall@10 | file@10 | hits@1 | mixed: recall@10 | file@10 | hits@1 |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    told = {}
    for layout, kind, questions in groups(made.questions):
        rows = {way: figures(found[way], questions) for way in WAYS}
        cells = [f"{value:.1f}" for way in WAYS for value in rows[way].values()]
        print(f"| {layout} | {kind} | {len(questions)} | {' | '.join(cells)} |")
        if kind == "all":
            told[layout] = rows
    if options.misses:
        for question in made.questions:
            for way in WAYS:
                if found[way][question.id].place is None:
                    print(f"{way}: {question.text!r} ({question.kind}), {question.path} {question.place}")
    print_report(
        "attachments",
        seed=options.seed,
        notes=made.notes,
        places=dict(made.places()),
        questions=len(made.questions),
        seconds_after_notes=round(waited, 2),
        below_aim=[layout for layout, rows in told.items() if rows["alone"]["recall_10"] < AIM],
        **told,
    )


if __name__ == "__main__":
    main()
