"""Rewritten notes and near ones that are none: how often `similar` names the original, and falsely another.

    python -m bench.rewrites EVAL VAULT [--notes N] [--each N] [--near N] [--vaults DIR]

EVAL is a folder of judged collections, VAULT one of Markdown notes. Their texts, with generated notes beside
them, are the collection. Originals are rewritten in five kinds, each under another title. The near ones are
texts that were left out of the collection, those that are nearest to one in it; what shares a fifth of its
runs of eight words with one (a licence, a form) is none of them, and is counted by itself.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import tempfile
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import trio
from attrs import frozen

from bench import corpus
from bench.judged import read_collections
from bench.rewording import reword
from lithos.app import Server, running_server
from lithos.config.catalogue import Config
from lithos.config.sections import LcmaConfig, SearchConfig, ServerConfig, StorageConfig
from lithos.core.text.chunk import chunk_text
from lithos.services.search.duplicates import NewNote

_NAMESPACE: Final = uuid.UUID("5a0f6c1e-8b0e-4a53-9d1a-6f5f6b1d0c55")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n{2,}")
#: Sentences and characters that an original has, and those of a rewrite of it.
LEAST_SENTENCES: Final = 6
SIZES: Final = (500, 12_000)
#: A text of which so much is in another, in runs of so many words, repeats it.
RUN, REPEATS = 8, 0.2
_TITLE: Final = re.compile(r"^#\s+(.+)$", re.MULTILINE)
_FRONTMATTER: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


@frozen
class Text:
    """A text of the collection, or one that was left out of it."""

    name: str
    title: str
    body: str

    @property
    def id(self) -> str:
        return str(uuid.uuid5(_NAMESPACE, self.name))

    def write(self, knowledge: Path) -> None:
        path = knowledge / f"real-{int(self.id[:2], 16) % 8}" / f"{self.id}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nid: {self.id}\nauthor: bench\n---\n\n# {self.title}\n\n{self.body}\n")


def read_texts(evaluation: Path, vault: Path) -> list[Text]:
    """The documents of the collections, whole, and the notes of the vault."""
    found: list[Text] = []
    for collection in read_collections(evaluation, ()):
        parts: dict[str, list[str]] = defaultdict(list)
        for chunk in collection.chunks:
            parts[chunk.doc].append(chunk.text)
        for doc, texts in parts.items():
            body = "\n\n".join(texts)
            found.append(Text(f"{collection.name}/{doc}", opening(body), body))
    for path in sorted(vault.rglob("*.md")):
        body = _FRONTMATTER.sub("", path.read_text(encoding="utf-8", errors="replace"))
        title = _TITLE.search(body)
        body = _TITLE.sub("", body, count=1).strip()
        if body:
            found.append(Text(f"vault/{path.relative_to(vault)}", title[1] if title else path.stem, body))
    return found


def opening(text: str) -> str:
    """The first words, as a title."""
    return " ".join(re.findall(r"\w+", text)[:6]) or "Note"


def sentences(text: str) -> list[str]:
    return [each.strip() for each in _SENTENCE.split(text) if each.strip()]


def shorten(text: Text, rng: random.Random, other: Text) -> str:
    """Half of the sentences, in their order."""
    found = sentences(text.body)
    kept = sorted(rng.sample(range(len(found)), max(3, len(found) // 2)))
    return " ".join(found[each] for each in kept)


def extend(text: Text, rng: random.Random, other: Text) -> str:
    """The whole text with half as many sentences of another one before, within and behind it."""
    own = sentences(text.body)
    added = sentences(other.body)[: max(2, len(own) // 2)]
    for each in added:
        own.insert(rng.choice((0, len(own) // 2, len(own))), each)
    return " ".join(own)


def reorder(text: Text, rng: random.Random, other: Text) -> str:
    """The same sentences in another order."""
    found = sentences(text.body)
    rng.shuffle(found)
    return " ".join(found)


def in_other_words(text: Text, rng: random.Random, other: Text) -> str:
    """Every word of the table by another of the same sense."""
    return reword(text.body)


def split(text: Text, rng: random.Random, other: Text) -> str:
    """One half of the text."""
    found = sentences(text.body)
    half = len(found) // 2
    return " ".join(found[:half] if rng.random() < 0.5 else found[half:])


KINDS: Final[dict[str, Callable[[Text, random.Random, Text], str]]] = {
    "shortened": shorten, "extended": extend, "reordered": reorder, "other words": in_other_words,
    "split": split,
}  # fmt: skip


def runs_of(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}


@frozen
class Trial:
    """What is looked for: a rewrite with its original, or a text without one."""

    kind: str
    new: NewNote
    original: str | None


def trials_of(texts: Sequence[Text], others: Sequence[Text], each: int, rng: random.Random) -> list[Trial]:
    """So many rewrites of each kind, of different originals; `others` is what extends them."""
    fit = [
        text
        for text in texts
        if SIZES[0] <= len(text.body) <= SIZES[1] and len(sentences(text.body)) >= LEAST_SENTENCES
    ]
    made: list[Trial] = []
    for kind, rewrite in KINDS.items():
        for text in rng.sample(fit, min(each, len(fit))):
            body = rewrite(text, rng, rng.choice(others))
            made.append(Trial(kind, NewNote(f"On {opening(body)} again", body, "bench"), text.id))
    return made


async def nearest(server: Server, text: Text) -> float:
    """How near the nearest note is to a passage of a text."""
    passages = [each.embedded for each in chunk_text(text.title, text.body[:4_000])[:4]]
    found = [await server.semantic.ask(passage, 1, 0.0).hits() for passage in passages]
    return max((hit.similarity for hits in found for hit in hits), default=0.0)


async def near_ones(
    server: Server, held: Sequence[Text], kept: Sequence[Text], most: int
) -> tuple[list[Trial], int]:
    """The texts that were left out and are nearest to one that was not; how many repeat one."""
    runs = Counter(run for text in kept for run in runs_of(text.body))
    ranked = sorted([(await nearest(server, text), text) for text in held], key=lambda each: -each[0])
    found: list[Trial] = []
    repeats = 0
    for _, text in ranked:
        own = runs_of(text.body)
        if own and sum(run in runs for run in own) >= REPEATS * len(own):
            repeats += 1
        elif len(found) < most:
            found.append(Trial("near", NewNote(text.title, text.body, "bench"), None))
    return found, repeats


async def measure(arguments: argparse.Namespace) -> None:
    rng = random.Random(arguments.seed)
    texts = read_texts(arguments.evaluation, arguments.vault)
    rng.shuffle(texts)
    held, kept = texts[: arguments.near * 3], texts[arguments.near * 3 :]
    with tempfile.TemporaryDirectory(prefix="lithos-rewrites-") as work:
        data = arguments.vaults / f"rewrites-{arguments.notes}" if arguments.vaults else Path(work) / "data"
        if not data.exists():
            corpus.generate(data / "knowledge", max(0, arguments.notes - len(kept)))
            for text in kept:
                text.write(data / "knowledge")
        config = Config(
            storage=StorageConfig(data_dir=data),
            server=ServerConfig(watch_files=False),
            search=SearchConfig(tier="static"),
            lcma=LcmaConfig(enabled=False),
        )
        async with running_server(config) as server:
            await server.searchable()
            trials = trials_of(kept, held, arguments.each, rng)
            near, repeats = await near_ones(server, held, kept, arguments.near)
            print(f"{len(server.catalogue)} notes, {len(kept)} real, {server.semantic.chunk_count} chunks")
            await report(server, trials, near, repeats)
    if not arguments.vaults:
        shutil.rmtree(work, ignore_errors=True)


async def report(server: Server, trials: Sequence[Trial], near: Sequence[Trial], repeats: int) -> None:
    """Ask once to warm caches, then measure."""
    total = Counter(each.kind for each in (*trials, *near))
    found, first, strong, told = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for each in (*trials[:20], *near[:20]):
        server.duplicates.similar(each.new)
    began = time.process_time()
    for each in (*trials, *near):
        similar = server.duplicates.similar(each.new)
        ids = [one.entry.note.id for one in similar]
        found[each.kind] += each.original in ids
        first[each.kind] += ids[:1] == [each.original]
        told[each.kind] += bool(similar)
        strong[each.kind] += any(one.match == "strong" for one in similar)
    spent = (time.process_time() - began) / (len(trials) + len(near)) * 1_000
    print("| kind | texts | original among three | first | any | any strong |")
    print("|---|---|---|---|---|---|")
    for kind, number in total.items():
        shares = " | ".join(
            f"{counts[kind] / number:.1%}" if kind != "near" or counts in (told, strong) else "-"
            for counts in (found, first, told, strong)
        )
        print(f"| {kind} | {number} | {shares} |")
    rewrites = sum(number for kind, number in total.items() if kind != "near")
    print(f"all kinds: {sum(found.values()) / rewrites:.1%}; {spent:.2f} ms of processor time a call")
    print(f"left out and repeating another: {repeats}")


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("evaluation", type=Path)
    parser.add_argument("vault", type=Path)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--each", type=int, default=100)
    parser.add_argument("--near", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--vaults", type=Path, help="keep the vault here")
    trio.run(measure, parser.parse_args(given))


if __name__ == "__main__":
    main()
