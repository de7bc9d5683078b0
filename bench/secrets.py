"""Measure the mask of secrets: how many made-up secrets it finds, false finds, and time.

`python -m bench.secrets` prints one JSON line: the shares on the seeded set of `tests/text/secrets/made.py`,
and the milliseconds for 100 KB of texts without secrets (best and median of `--rounds`). `--corpus DIR` also
scans the text files of a folder and lists place and kind of each find.
"""

from __future__ import annotations

import argparse
import json
import random
import string
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.report import print_report
from lithos.text.secrets.masking import find_secrets, mask
from tests.text.secrets.made import look_alikes, secrets

#: Characters of a measured text.
LENGTH: Final = 100_000
ROOT: Final = Path(__file__).parents[1]


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m bench.secrets", description=__doc__)
    parser.add_argument("--rounds", type=int, default=21, metavar="N", help="rounds for each text")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the set")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="folder of text files to scan as well")
    return parser.parse_args(arguments)


def main() -> None:
    """Measure and print the report."""
    options = parse_arguments()
    report = quality(options.seed)
    report["ms_for_100_kb"] = {name: timed(text, options.rounds) for name, text in texts().items()}
    if options.corpus is not None:
        report["corpus"] = scan(options.corpus)
    print_report("secrets", **report)


def quality(seed: int) -> dict[str, Any]:
    """Return the shares of secrets that are masked wholly, and of look-alikes that are masked."""
    made, alike = list(secrets(seed)), list(look_alikes(seed + 1))
    missed = [name for name, text, value in made if mask(text) == text or (value and value in mask(text))]
    false = sum(mask(text) != text for text in alike)
    return {
        "secrets": len(made),
        "found": round(1 - len(missed) / len(made), 4),
        "missed": missed,
        "look_alikes": len(alike),
        "false": round(false / len(alike), 5),
    }


def texts() -> Mapping[str, str]:
    """Return texts without secrets: prose, source code, JSON on one line, and one line of base64."""
    r = random.Random(1)
    prose = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md")))
    code = "\n".join(
        path.read_text(encoding="utf-8") for path in sorted((ROOT / "lithos/kernel").rglob("*.py"))
    )
    rows = json.dumps(
        [{"id": n, "name": f"row {n}", "values": [n] * 3} for n in range(3_000)], separators=(",", ":")
    )
    image = "".join(r.choices(string.ascii_letters + string.digits + "+/", k=LENGTH))
    return {
        name: text[:LENGTH]
        for name, text in [("prose", prose), ("code", code), ("json", rows), ("base64", image)]
    }


def timed(text: str, rounds: int) -> dict[str, float]:
    """Return the milliseconds of a search, without the first, which compiles patterns."""
    find_secrets(text)
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        find_secrets(text)
        taken.append(1_000 * (time.perf_counter() - began) * LENGTH / len(text))
    return {"best": round(min(taken), 2), "median": round(median(taken), 2)}


def scan(folder: Path) -> dict[str, Any]:
    """Return the number of files and characters of a folder, and each find with its place."""
    files = characters = 0
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        try:
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
        except (OSError, UnicodeDecodeError):
            continue
        files, characters = files + bool(text), characters + len(text)
        found += [
            f"{path.relative_to(folder)}:{text.count(chr(10), 0, begin) + 1} {kind}"
            for begin, _, kind in find_secrets(text)
        ]
    return {"files": files, "characters": characters, "found": found}


if __name__ == "__main__":
    main()
