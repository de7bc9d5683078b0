"""What attachments cost others: rankings of notes with attachments beside them, writes while they are read.

Rankings: the notes of a judged collection and those of the attachments vault are served (a) without any other
file and with attachments off, (b) with the files beside them and `kinds: ["note"]`, where every row is to be
the same to the last digit, (c) with them and no `kinds`, where nDCG at 10 may be at most 0.5 points of 100
lower; a row of an attachment counts as a document that answers nothing. One data directory serves all, so
that the indexes of the notes are the same files. Queries ask for 10 rows, and for 50 as `bench.quality` does.

Writes: one client writes notes one after another, alone for a while and while PDF pages are extracted, in
turn; the second part lasts until the last page is searchable.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import trio
from attrs import frozen

from bench import corpus
from bench.attachments_vault import generate, write_pages
from bench.judged import Collection, JudgedQuery, read_collections
from bench.rankings import Measured, Rank, called, measure
from bench.report import print_report
from bench.tiers import search_config
from bench.vaults import learning_config
from bench.write import Request, writing
from lithos.app import Server, running_server
from lithos.config.catalogue import Config
from lithos.config.sections import AttachmentsConfig, ServerConfig, StorageConfig

#: Rows that a query asks for.
LIMITS: Final = (10, 50)
#: Points of 100 of nDCG that mixed rankings may lose, and what writes may take beside an extraction.
MOST_LOST, MOST_RATIO = 0.5, 1.2
#: Notes of the vault of writes, writes before the first measured one, seconds of writes alone in a round.
CORPUS, WARM_UP, ALONE_SECONDS = 2_000, 60, 12.0
#: Seconds for a set of files to be noticed, for all of it to be read, and between two looks.
PATIENCE, READING_PATIENCE, LOOK = 30.0, 600.0, 0.01


@frozen
class BesideOptions:
    """`seed` of the vaults, `pages` and `rounds` of writes, `sample` queries of each collection."""

    seed: int = 7
    pages: int = 1_000
    rounds: int = 3
    sample: int | None = None


def attachments_config(data: Path, vault: Path, *, enabled: bool | None = None) -> Config:
    """A vault in place with static embeddings, whole answers, and nothing learned by being asked."""
    return Config(
        storage=StorageConfig(data_dir=data, vault=vault),
        server=ServerConfig(max_answer_chars=0),
        search=search_config("static"),
        lcma=learning_config(),
        attachments=AttachmentsConfig(enabled=enabled),
    )


# Rankings of notes


@frozen
class Asked:
    """Rankings and scores of all queries, and a digest of the rows that each was answered with."""

    measured: Measured
    rows: Mapping[str, str]


class _Documents(dict[str, str]):
    """The document of each judged note; any other row is a document of its own."""

    def __missing__(self, row: str) -> str:
        return row


async def measure_notes(folder: Path, only: Sequence[str], options: BesideOptions) -> None:
    """Print, for each collection and number of rows, nDCG at 10 of (a), (b) and (c)."""
    print("| collection | rows | without | kinds: note | other rows | mixed | lost | 95 % | changed |")
    print("|---|---|---|---|---|---|---|---|---|")
    for collection in read_collections(folder, only):
        with tempfile.TemporaryDirectory(prefix="lithos-attachments-") as work:
            await _compare(collection.sample(options.sample), Path(work), options)


async def _compare(collection: Collection, work: Path, options: BesideOptions) -> None:
    vault, beside = work / "vault", work / "beside"
    collection.write_notes(vault / "judged")
    generate(beside, seed=options.seed)
    _copy(beside, vault / "beside", lambda path: path.suffix == ".md")
    without: dict[int, Asked] = {}
    async with running_server(attachments_config(work / "data", vault, enabled=False)) as server:
        await server.searchable()
        for limit in LIMITS:
            without[limit] = await _ask(server, collection, limit)
    _copy(beside, vault / "beside", lambda path: path.suffix != ".md")
    async with running_server(attachments_config(work / "data", vault)) as server:
        await server.searchable()
        await server.actors.attaching.caught_up()
        for limit in LIMITS:
            notes = await _ask(server, collection, limit, kinds=["note"])
            mixed = await _ask(server, collection, limit)
            _tell_notes(collection, limit, without[limit], notes, mixed)


def _copy(folder: Path, target: Path, is_wanted: Callable[[Path], bool]) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and is_wanted(path):
            copied = target / path.relative_to(folder)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copied)


async def _ask(server: Server, collection: Collection, limit: int, **filters: object) -> Asked:
    digests: dict[str, str] = {}

    def ranker() -> Rank:
        async def rank(query: str) -> list[str]:
            answer = await called(server, "lithos_search", query=query, limit=limit, **filters)
            rows: Any = answer["results"]
            told = json.dumps(rows, sort_keys=True, default=str).encode()
            digests[query] = hashlib.sha256(told).hexdigest()
            return [_row_id(row) for row in rows]

        return rank

    measured = await measure(ranker(), _Documents(collection.documents()), collection.queries)
    return Asked(measured, digests)


def _row_id(row: Mapping[str, Any]) -> str:
    """Each place of an attachment is a document of its own, which answers nothing."""
    return f"{row['id']}#{row['place']}" if row.get("kind") == "attachment" else str(row["id"])


def _tell_notes(collection: Collection, limit: int, without: Asked, notes: Asked, mixed: Asked) -> None:
    queries: Sequence[JudgedQuery] = collection.queries
    ndcg = [each.measured.figures(queries)["ndcg"] for each in (without, notes, mixed)]
    other = sum(without.rows[query.text] != notes.rows[query.text] for query in queries)
    difference, low, high = mixed.measured.over(without.measured, queries)["ndcg"]
    changed = mixed.measured.changed(without.measured, queries)
    is_equal = other == 0 and notes.measured == without.measured
    print(
        f"| {collection.name} | {limit} | {ndcg[0]:.2f} | {ndcg[1]:.2f} | {other} of {len(queries)} | "
        f"{ndcg[2]:.2f} | {-difference:.2f} | {-high:.2f} to {-low:.2f} | {changed} |"
    )
    print_report(
        "attachments_notes",
        collection=collection.name,
        rows=limit,
        queries=len(queries),
        ndcg=dict(zip(("without", "note", "mixed"), ndcg, strict=True)),
        note_is_equal=is_equal,
        other_rows=other,
        mixed_over_without=(difference, low, high),
        mixed_changed=changed,
        is_within=is_equal and -difference <= MOST_LOST,
    )


# Writes


@frozen
class Waits:
    """What writes waited for, in ms, and how many there were a second."""

    count: int
    p50: float
    p95: float
    rate: float

    @classmethod
    def of(cls, waited: Sequence[float], elapsed: float) -> Waits:
        """Of seconds of each write, and of all of them together."""
        ordered = sorted(waited)
        p50, p95 = (1e3 * ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 95))
        return cls(len(ordered), round(p50, 2), round(p95, 2), round(len(ordered) / elapsed, 1))


async def measure_writes(options: BesideOptions) -> None:
    """Print p50 and p95 of writes alone and beside an extraction, round by round, and their ratio."""
    with tempfile.TemporaryDirectory(prefix="lithos-attachments-") as work:
        vault = Path(work) / "vault"
        corpus.generate(vault, CORPUS)
        sets = [Path(work) / "sets" / f"round-{number}" for number in range(options.rounds)]
        for number, folder in enumerate(sets):
            write_pages(folder, options.pages, seed=1_000 * options.seed + number)
        async with running_server(attachments_config(Path(work) / "data", vault)) as server:
            await server.searchable()
            await server.actors.attaching.caught_up()
            await _measure_rounds(server, vault, sets, options)


async def _measure_rounds(server: Server, vault: Path, sets: Sequence[Path], options: BesideOptions) -> None:
    texts = corpus.queries(5, 2_000)
    await _write(server, writing(texts, "warm"), trio.current_time() + 60, most=WARM_UP)
    print("| round | alone: p50 | p95 | beside: p50 | p95 | ratio of p95 | pages a second | peak MiB |")
    print("|---|---|---|---|---|---|---|---|")
    ratios = []
    for number, folder in enumerate(sets):
        alone = await _write(server, writing(texts, f"a{number}"), trio.current_time() + ALONE_SECONDS)
        parts = server.actors.attaching.backlog().parts
        folder.rename(vault / folder.name)
        await _reading_begins(server)
        began = time.perf_counter()
        beside = await _write_while_reading(server, writing(texts, f"b{number}"), parts + options.pages)
        rate = options.pages / (time.perf_counter() - began)
        ratios.append(beside.p95 / alone.p95)
        peak = server.actors.attaching.extractor.memory()
        mebibytes = None if peak is None else round(peak / 2**20, 1)
        print(
            f"| {number + 1} | {alone.p50} | {alone.p95} | {beside.p50} | {beside.p95} | "
            f"{ratios[-1]:.2f} | {rate:.0f} | {mebibytes} |"
        )
        print_report(
            "attachments_writes",
            round=number + 1,
            alone=_as_dict(alone),
            beside=_as_dict(beside),
            p95_ratio=round(ratios[-1], 3),
            pages_per_s=round(rate, 1),
            extractor_peak_mib=mebibytes,
        )
    middle = median(ratios)
    print(f"p95 beside an extraction: {middle:.2f} times that alone (aim: at most {MOST_RATIO})")


async def _reading_begins(server: Server) -> None:
    """Return once a file is known to wait. Raises `TooSlowError`."""
    with trio.fail_after(PATIENCE):
        while True:
            if server.actors.attaching.backlog().waiting:
                return
            await trio.sleep(LOOK)


def _as_dict(waits: Waits) -> dict[str, float]:
    return {"writes": waits.count, "p50": waits.p50, "p95": waits.p95, "rate": waits.rate}


async def _write(
    server: Server, request: Callable[[int], Request], until: float, most: int | None = None
) -> Waits:
    """One write after another up to a time of trio's clock, or so many."""
    waited: list[float] = []
    began = time.perf_counter()
    while trio.current_time() < until and (most is None or len(waited) < most):
        tool, arguments = request(len(waited))
        started = time.perf_counter()
        await called(server, tool, **arguments)
        waited.append(time.perf_counter() - started)
        await trio.lowlevel.checkpoint()
    return Waits.of(waited, time.perf_counter() - began)


async def _write_while_reading(server: Server, request: Callable[[int], Request], parts: int) -> Waits:
    """One write after another until so many pages, in all, are searchable."""
    waited: list[float] = []
    began = time.perf_counter()
    async with trio.open_nursery() as nursery:

        async def write() -> None:
            while True:
                tool, arguments = request(len(waited))
                started = time.perf_counter()
                # The last one is not broken off: what is measured is whole writes.
                with trio.CancelScope(shield=True):
                    await called(server, tool, **arguments)
                waited.append(time.perf_counter() - started)
                await trio.lowlevel.checkpoint()

        nursery.start_soon(write)
        with trio.fail_after(READING_PATIENCE):
            while server.actors.attaching.backlog().parts < parts:  # files are noticed one by one
                await trio.sleep(LOOK)
                await server.actors.attaching.caught_up()
        nursery.cancel_scope.cancel()
    return Waits.of(waited, time.perf_counter() - began)
