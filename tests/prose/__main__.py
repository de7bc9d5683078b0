"""`python -m tests.prose`: what the style bans, a line each; `sample --seed N` draws texts to be graded."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Sequence

from tests.prose.style import find_fouls
from tests.prose.texts import KINDS, Text, all_texts


def main() -> None:
    """Print fouls, their counts by kind, or a sample of texts."""
    parser = argparse.ArgumentParser(prog="python -m tests.prose", description=__doc__)
    parser.add_argument("action", nargs="?", choices=("fouls", "count", "sample"), default="fouls")
    parser.add_argument("--kind", choices=KINDS, help="texts of one kind only")
    parser.add_argument("--path", default="", help="texts of files whose path begins so")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--number", type=int, default=200, help="texts in the sample, spread over the kinds")
    given = parser.parse_args()
    texts = [
        text
        for text in all_texts()
        if text.path.startswith(given.path) and (given.kind is None or text.kind == given.kind)
    ]
    if given.action == "sample":
        for text in draw(texts, given.seed, given.number):
            print(f"{text.path}:{text.line}\t{text.kind}\t{text.text}")
        return
    fouls = find_fouls(texts)
    if given.action == "fouls":
        print("\n".join(map(str, fouls)))
    counts, totals = Counter(foul.text.kind for foul in fouls), Counter(text.kind for text in texts)
    for kind in KINDS:
        print(f"{kind}: {counts[kind]} in {totals[kind]} texts")


def draw(texts: Sequence[Text], seed: int, number: int) -> list[Text]:
    """The same number of texts of each kind, as far as there are any."""
    chance = random.Random(seed)
    kinds = [kind for kind in KINDS if any(text.kind == kind for text in texts)]
    drawn = list[Text]()
    for kind in kinds:
        of_kind = [text for text in texts if text.kind == kind and len(text.plain.split()) > 2]
        drawn += chance.sample(of_kind, min(len(of_kind), -(-number // len(kinds))))
    return drawn


if __name__ == "__main__":
    main()
