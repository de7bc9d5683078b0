"""Holds what answers cost the agent: compares figures of `bench.economy` with those in `economy.json`.

`python -m bench.economy_kept` measures generated dialogues, one note per session, under `server.answers:
compact`. It fails where a figure is more than 2 % worse: a longer answer, less text of notes in it, less
evidence within the limits of characters. A briefing may be longer, but not than its budget. `--keep` writes
the figures of this revision instead. It needs no other files, and takes half a minute. A slow test does the
same.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import trio

from bench.context import generated
from bench.economy import measure
from bench.vaults import Vaults
from lithos.config.sections import ServerConfig

KEPT = Path(__file__).with_name("economy.json")
#: Share by which a figure may be worse than the one that is kept.
MARGIN = 0.02
QUESTIONS, SEED = 40, 7
#: Figures that are better the smaller they are, and those that are better the larger they are.
SMALLER, LARGER = ("characters", "a_row", "most_of_budget"), ("of_notes", "evidence")
#: By call (or limit of characters) and figure.
Figures = Mapping[str, Mapping[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.economy_kept", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--keep", action="store_true", help="write the figures to economy.json")
    options = parser.parse_args()
    figures = measure_kept()
    if options.keep:
        KEPT.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        return
    found = worse(figures, json.loads(KEPT.read_text(encoding="utf-8")))
    print("\n".join(found) or "No answer costs more than it did.")
    sys.exit(bool(found))


def measure_kept() -> dict[str, dict[str, float]]:
    """Return the figures that are held, of this revision."""
    with tempfile.TemporaryDirectory(prefix="lithos-economy-") as folder:
        vaults = Vaults(Path(folder), server=ServerConfig(answers="compact"))
        measured = trio.run(measure, generated("sessions", QUESTIONS, SEED), vaults)
    figures: dict[str, dict[str, float]] = {}
    for row in measured:
        if row["bench"] == "evidence":
            figures[f"within {row['within']}"] = {"evidence": row["shown"]["context"]}
        else:
            figures[row["call"]] = {each: row[each] for each in (*SMALLER, *LARGER) if row.get(each)}
        if "most_of_budget" in row:
            figures[row["call"]] |= {"most_of_budget": max(1.0, row["most_of_budget"])}
            del figures[row["call"]]["characters"]
    return figures


def worse(figures: Figures, kept: Figures) -> list[str]:
    """Return a sentence for each figure that is worse than the kept one by more than the margin."""
    found: list[str] = []
    for call, each in kept.items():
        for name, before in each.items():
            now = figures.get(call, {}).get(name)
            if now is None:
                found.append(f"{call}: {name} is not measured any more.")
            elif now > before * (1 + MARGIN) if name in SMALLER else now < before * (1 - MARGIN):
                found.append(f"{call}: {name} is {now:g}, and {before:g} is kept in {KEPT.name}.")
    return found


if __name__ == "__main__":
    main()
