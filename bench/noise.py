"""How much of what an agent is given is noise: comments, and words that very many notes share.

`python -m bench.noise --data DIR` makes a vault of 6,500 notes with shared footers (`bench.vault --frames`;
or takes the vault of `--vault DIR`), asks 30 questions, and measures the share of noise in the text of
`lithos_context` (under its notes), in the snippets of `lithos_search` and in those of `lithos_retrieve`. A
question is the title of a note that was drawn and two rare words of it; each third one has a word from a
shared run as well.

What is noise is found without the server: runs of three words that stand in comments (`%%`, HTML), or that
at least 20 notes and a quarter of those of their top folder have, without markup and with all numbers alike.
Bare headings are lines in bold letters alone that nothing but another, or the end, follows. Differences to
another revision: `--into FILE` keeps the shares of each question, `--against FILE` tells them in pairs with
95 % intervals.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import trio
from attrs import field, frozen

from bench.measures import mean, paired_difference
from bench.rankings import called
from bench.report import print_report
from bench.tiers import search_config, wait_for_tier
from bench.vault import generate
from bench.vaults import learning_config, vault_folder
from lithos.app import Server, running_server
from lithos.config.catalogue import Config
from lithos.config.sections import StorageConfig
from lithos.core.text.analysis import FUNCTION_WORDS, fold, words

QUESTIONS: Final = 30
BUDGET: Final = 2_000
ROWS: Final = 10
WAYS: Final = ("context", "snippets", "retrieve", "headings")
#: Notes that share a run of words, at least: so many, and this share of those of their top folder.
SHARED, SHARE = 20, 0.25
RUN: Final = 3
#: Words of a note that a question is made of, at least.
LEAST: Final = 60

_FRONTMATTER: Final = re.compile(r"\A\ufeff?---\n.*?^---\n", re.DOTALL | re.MULTILINE)
_COMMENT: Final = re.compile(r"%%.*?%%|<!--.*?-->", re.DOTALL)
_MARKUP: Final = re.compile(r"\]\([^()\n]*\)|<[^<>\n]*>|\[\[[^\[\]|\n]*\|")
_HEADING: Final = re.compile(r"\*\*[^*\n]+\*\*")
Runs = frozenset[tuple[str, ...]]


@frozen
class Text:
    """A note as it stands: its name and top folder, the words of its body and of each comment in it."""

    name: str
    top: str
    words: Sequence[str]
    comments: Sequence[Sequence[str]]


@frozen
class Noise:
    """The runs of words that are noise, and the words of shared ones."""

    runs: Runs
    shared: Sequence[str] = field(factory=tuple)

    def share(self, text: str) -> float:
        """The share of a text, 0..1, by the characters of its lines."""
        noise = total = 0.0
        for line in filter(str.strip, text.splitlines()):
            total += len(line)
            said = spoken(line)
            hit = [False] * len(said)
            for start, run in enumerate(runs_of(said)):
                if run in self.runs:
                    hit[start : start + RUN] = [True] * RUN
            noise += len(line) * sum(hit) / len(said) if said else 0.0
        return noise / total if total else 0.0


def read_texts(vault: Path) -> list[Text]:
    """The notes of a vault, as they stand in its files."""
    found = []
    for path in sorted(vault.rglob("*.md")):
        parts = path.relative_to(vault).parts
        if any(part.startswith(".") for part in parts):
            continue
        text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
        body = _FRONTMATTER.sub("", text)
        comments = [spoken(comment[2:-2]) for comment in _COMMENT.findall(body)]
        found.append(Text(path.stem, parts[0], spoken(_COMMENT.sub("", body)), comments))
    return found


def spoken(text: str) -> list[str]:
    """The words of a text without its markup, all numbers alike."""
    return [re.sub(r"\d+", "0", word) for _, word in words(fold(_MARKUP.sub(" ", text)))]


def runs_of(said: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(said[start : start + RUN]) for start in range(len(said) - RUN + 1)]


def find_noise(texts: Sequence[Text]) -> Noise:
    """What is noise in these notes."""
    counted: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    notes = Counter(text.top for text in texts)
    for text in texts:
        counted[text.top].update(set(runs_of(text.words)))
    shared = {
        run
        for top, runs in counted.items()
        for run, count in runs.items()
        if count >= max(SHARED, SHARE * notes[top]) and len(set(run) - {"0"}) > 1
    }
    hidden = {run for text in texts for comment in text.comments for run in runs_of(comment)}
    told = sorted({word for run in shared for word in run if len(word) > 3 and word not in FUNCTION_WORDS})
    return Noise(frozenset(shared | hidden), told)


def make_questions(texts: Sequence[Text], noise: Noise, count: int, seed: int) -> list[str]:
    """Titles of notes with two rare words of each; with a word of a shared run in each third."""
    rng = random.Random(f"noise {seed}")
    frequency = Counter(word for text in texts for word in set(text.words))
    own = [text for text in texts if len(text.words) >= LEAST]
    questions = []
    for number, text in enumerate(rng.sample(own, min(count, len(own)))):
        said = {word for word in text.words if len(word) > 3 and word not in noise.shared}
        rare = sorted(said, key=lambda word: (abs(frequency[word] - 10), word))[:2]
        extra = [rng.choice(noise.shared)] if number % 3 == 2 and noise.shared else []
        questions.append(" ".join([*spoken(text.name)[:4], *rare, *extra]))
    return questions


def notes_of(briefing: str) -> str:
    """The excerpts of a briefing, without the lines above them."""
    _, _, below = briefing.partition("\n## Notes\n" if not briefing.startswith("## Notes") else "## Notes\n")
    told = re.split(r"^## ", below, maxsplit=1, flags=re.MULTILINE)[0]
    return "\n".join(line for line in told.splitlines() if not line.startswith("### "))


def bare_headings(text: str) -> float:
    """The share of a text that are headings with nothing under them."""
    lines = [line for line in text.splitlines() if line.strip()]
    bare = [
        line
        for line, following in zip(lines, [*lines[1:], "[…]"], strict=True)
        if _HEADING.fullmatch(line) and (_HEADING.fullmatch(following) or following == "[…]")
    ]
    return sum(map(len, bare)) / max(1, sum(map(len, lines)))


async def ask(server: Server, questions: Sequence[str], noise: Noise, budget: int) -> dict[str, list[float]]:
    """The share of noise in each answer, by the way it was asked for."""
    shares: dict[str, list[float]] = defaultdict(list)
    for question in questions:
        briefing = await called(server, "lithos_context", query=question, budget=budget)
        excerpts = notes_of(str(briefing["text"]))
        shares["context"].append(noise.share(excerpts))
        shares["headings"].append(bare_headings(excerpts))
        for way, tool in (("snippets", "lithos_search"), ("retrieve", "lithos_retrieve")):
            found = await called(server, tool, query=question, limit=ROWS)
            shares[way].append(noise.share("\n".join(_snippets(found))))
    return shares


def _snippets(answer: Mapping[str, Any]) -> Iterator[str]:
    for row in answer["results"]:
        yield str(row["snippet"])


async def measure(vault: Path, data: Path, options: argparse.Namespace) -> None:
    """Ask everything and print."""
    texts = read_texts(vault)
    noise = find_noise(texts)
    questions = make_questions(texts, noise, options.questions, options.seed)
    config = Config(
        storage=StorageConfig(data_dir=data, vault=vault),
        search=search_config("static"),
        lcma=learning_config(),
    )
    async with running_server(config) as server:
        await wait_for_tier(server, "static")
        shares = await ask(server, questions, noise, options.budget)
    if options.into:
        options.into.write_text(json.dumps(shares), encoding="utf-8")
    before = json.loads(options.against.read_text(encoding="utf-8")) if options.against else {}
    for way in WAYS:
        print_report(
            "noise",
            way=way,
            questions=len(questions),
            share=paired_difference(shares[way], [0.0] * len(questions)),
            with_any=sum(share > 0 for share in shares[way]),
            **({"before": mean(before[way]), "change": paired_difference(shares[way], before[way])})
            if before
            else {},
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.noise", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--data", type=Path, help="folder that keeps the vault and its indexes")
    parser.add_argument("--vault", type=Path, help="another vault; nothing is written into it")
    parser.add_argument("--notes", type=int, default=6_500)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--budget", type=int, default=BUDGET, help="tokens of a briefing")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--into", type=Path, metavar="FILE", help="keep the shares of each question")
    parser.add_argument("--against", type=Path, metavar="FILE", help="of another revision")
    options = parser.parse_args()
    with vault_folder(options.data) as folder:
        vault = options.vault
        if vault is None:
            vault = folder / f"vault-{options.notes}-{options.seed}"
            if not vault.exists():
                generate(vault, options.notes, seed=options.seed, frames=True)
        trio.run(measure, vault, folder / f"data-{vault.name}", options)


if __name__ == "__main__":
    main()
