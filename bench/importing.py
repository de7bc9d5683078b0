"""Notes a second of `lithos import`, from the start of the command until all is searchable, without a server.

A folder of Markdown files of about 2 KB; the model's start is part of it. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

SYLLABLES = ("al", "be", "cor", "de", "en", "fa", "gor", "hi", "in", "ka", "lo", "mi", "na", "or", "pe", "ra")


def make_vault(folder: Path, notes: int) -> None:
    """Notes with frontmatter, a tag and a link each, in fifty folders."""
    random = Random(18)
    words = ["".join(random.choices(SYLLABLES, k=random.randint(1, 3))) for _ in range(3_000)]
    for number in range(notes):
        path = folder / f"folder {number % 50}" / f"note {number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = " ".join(random.choices(words, k=400))[:1_850]
        path.write_text(
            f"---\ntags: [tag{number % 20}]\n---\n# Note {number}\n\n[[note {number * 7 % notes}]]. {text}\n"
        )


def measure(notes: int) -> dict[str, float]:
    """One import; seconds, notes a second, and those without the start of the process."""
    with tempfile.TemporaryDirectory() as folder:
        vault, data = Path(folder, "vault"), Path(folder, "data")
        make_vault(vault, notes)
        command = [sys.executable, "-m", "lithos", "-d", str(data), "--json", "import"]
        begun = time.perf_counter()
        done = subprocess.run([*command, str(vault)], capture_output=True, check=True, text=True)
        seconds = time.perf_counter() - begun
        assert json.loads(done.stdout)["notes"]["created"] == notes
        begun = time.perf_counter()
        done = subprocess.run([*command, str(vault)], capture_output=True, check=True, text=True)
        again = time.perf_counter() - begun
        assert json.loads(done.stdout)["notes"]["unchanged"] == notes
        return {"seconds": seconds, "notes_per_second": notes / seconds, "again_seconds": again}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rounds = [measure(given.notes) for _ in range(given.rounds)]
    medians = {name: round(statistics.median(each[name] for each in rounds), 2) for name in rounds[0]}
    print(json.dumps({"notes": given.notes, "rounds": given.rounds, **medians, "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
