"""`lithos care` on a vault: what is found of planted faults, false ones by kind, time, and what others wait.

    python -m bench.care EVAL [--notes N] [--faults N]
    python -m bench.care --vault DIR

The vault has the documents of the judged collections below EVAL and generated notes beside them; so many
faults of each kind are planted in it, rewritten documents among them (`bench.rewrites`). What is told besides
may be a fault all the same: the generator makes links that lead nowhere and notes without any, and some
documents repeat others. `--vault` looks at a real one in a copy, and only counts.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import trio

from bench import corpus
from bench.rewrites import KINDS, LEAST_SENTENCES, SIZES, Text, opening, read_texts, sentences
from lithos.app import Server, running_server
from lithos.config.catalogue import Config
from lithos.config.sections import LcmaConfig, SearchConfig, ServerConfig, StorageConfig

_OLD = "updated_at: 2024-01-01T00:00:00+00:00\ncreated_at: 2024-01-01T00:00:00+00:00\n"


def body_of(path: Path) -> str:
    """The text of a generated note, without frontmatter and title."""
    text = path.read_text(encoding="utf-8")
    if text.startswith("---\n"):
        text = text.split("\n---\n", 1)[1]
    lines = [line for line in text.strip().split("\n") if not line.startswith("# ")]
    return "\n".join(lines).strip()


def plant(knowledge: Path, texts: Sequence[Text], faults: int, seed: int) -> Mapping[str, set[str]]:
    """Plant so many faults of each kind; the paths that are to be found by group. `texts` are there."""
    rng = random.Random(seed)
    notes = sorted(knowledge.rglob("*.md"))
    hub = knowledge / "hub.md"
    planted: dict[str, set[str]] = {
        group: set()
        for group in ("duplicates", "stubs", "unlinked", "dead_links", "unused", "expired", "broken",
                      "conflict_markers")
    }  # fmt: skip
    linked: list[str] = []

    def put(group: str, name: str, text: str, *, link: bool = True) -> None:
        path = knowledge / "planted" / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        planted[group].add(f"planted/{name}.md")
        if link:
            linked.append(f"[[planted/{name}]]")

    bodies = {path: body_of(path) for path in rng.sample(notes, min(len(notes), faults * 8))}
    fit = [path for path, body in bodies.items() if len(sentences(body)) >= 6]
    chosen = iter(fit)
    kinds = list(KINDS.items())
    originals = [
        text
        for text in texts
        if SIZES[0] <= len(text.body) <= SIZES[1] and len(sentences(text.body)) >= LEAST_SENTENCES
    ]
    originals = rng.sample(originals, faults + 1)
    for number in range(faults):
        kind, rewrite = kinds[number % len(kinds)]
        rewritten = rewrite(originals[number], rng, originals[-1])
        name = f"{kind.replace(' ', '-')}-{number}"
        put("duplicates", name, f"# On {opening(rewritten)} again\n\n{rewritten}\n")
        put("stubs", f"stub-{number}", f"# Stub {number}\n\nTo be written by number {number}.\n")
        body = bodies[next(chosen)].replace("[[", "").replace("]]", "")
        words = body.split()
        rng.shuffle(words)  # no sentence of the original is left
        own = " ".join(words)
        put("unlinked", f"alone-{number}", f"# Alone {number}\n\n{own}\n", link=False)
        for group, head in (
            ("unused", f"---\ntitle: Old {number}\n{_OLD}---\n\n"),
            ("expired", f"---\ntitle: Late {number}\nexpires_at: 2025-01-01T00:00:00+00:00\n---\n\n"),
            ("broken", f"---\ntitle: [{number}\n---\n\n"),
        ):
            rng.shuffle(words)
            put(group, f"{group}-{number}", f"{head}{' '.join(words)}\n")
        rng.shuffle(words)
        marked = "<<<<<<< ours\na\n=======\nb\n>>>>>>> theirs"
        put("conflict_markers", f"git-{number}", f"# Git {number}\n\n{marked}\n\n{' '.join(words)}\n")
        rng.shuffle(words)
        # One letter of a title is missing.
        title = rng.choice(notes).stem
        put(
            "dead_links",
            f"dead-{number}",
            f"# Dead {number}\n\n{' '.join(words)} [[{title[:3]}{title[4:]}]]\n",
        )
    hub.write_text("# Hub\n\n" + "\n".join(linked) + "\n", encoding="utf-8")
    return planted


async def look(server: Server) -> tuple[float, float, float]:
    """Processor seconds, seconds, and the longest a task that wakes every millisecond had to wait, in ms."""
    longest = 0.0

    async def wake(scope: trio.CancelScope) -> None:
        nonlocal longest
        with scope:
            while True:
                began = time.perf_counter()
                await trio.sleep(0.001)
                longest = max(longest, time.perf_counter() - began - 0.001)

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wake, scope)
        began, spent = time.perf_counter(), time.process_time()
        await server.care.report(600)
        taken, spent = time.perf_counter() - began, time.process_time() - spent
        scope.cancel()
    return spent, taken, longest * 1_000


async def measure(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="lithos-care-") as work:
        data = Path(work) / "data"
        planted: Mapping[str, set[str]] = {}
        if arguments.vault:
            shutil.copytree(arguments.vault, data / "knowledge")
        else:
            texts = read_texts(arguments.evaluation, data / "none")
            corpus.generate(data / "knowledge", max(0, arguments.notes - len(texts)))
            planted = plant(data / "knowledge", texts, arguments.faults, 7)
            for text in texts:
                text.write(data / "knowledge")
        config = Config(
            storage=StorageConfig(data_dir=data),
            server=ServerConfig(watch_files=False),
            search=SearchConfig(tier="static"),
            lcma=LcmaConfig(enabled=False),
        )
        async with running_server(config) as server:
            await server.searchable()
            await server.actors.catching_up.done.wait()
            spent, taken, longest = await look(server)
            report(server, planted, arguments)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{len(server.catalogue)} notes: {spent:.1f} s of processor time, {taken:.1f} s, longest "
                f"stop of the event loop {longest:.0f} ms, peak {peak:.0f} MiB"
            )


def report(server: Server, planted: Mapping[str, set[str]], arguments: argparse.Namespace) -> None:
    """The table; of a group with more rows than are told, the planted among the told ones are counted."""
    last = server.care.last
    assert last is not None
    print("| group | told | planted | found | not planted |")
    print("|---|---|---|---|---|")
    for group in sorted({*last.totals, *planted}):
        rows = last.rows.get(group, ())
        wanted = planted.get(group, set())
        found = {note.path for row in rows for note in row.notes} & wanted
        false = sum(1 for row in rows if not any(note.path in wanted for note in row.notes))
        print(f"| {group} | {last.totals.get(group, 0)} | {len(wanted)} | {len(found)} | {false} |")
        if group == "dead_links" and wanted:
            print(f"| of them with a likely target | | | {sum(row.likely is not None for row in rows)} | |")
        if group == "duplicates" and wanted:
            for kind in KINDS:
                begin = f"planted/{kind.replace(' ', '-')}-"
                planted_of, found_of = ([p for p in some if p.startswith(begin)] for some in (wanted, found))
                print(f"| of them {kind} | | {len(planted_of)} | {len(found_of)} | |")
    for text in last.troubles:
        print(text)
    if arguments.vault:
        for group, rows in last.rows.items():
            for row in rows[: arguments.shown]:
                print(f"{group}: {', '.join(note.path for note in row.notes)}: {row.why}")


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("evaluation", type=Path, nargs="?")
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--vault", type=Path)
    parser.add_argument("--shown", type=int, default=5, help="rows of a group that --vault prints")
    trio.run(measure, parser.parse_args(given))


if __name__ == "__main__":
    main()
