"""Tables of what `bench.quality`, `bench.conversations` and `bench.lookup` have printed, in Markdown.

`python -m bench.quality_tables RESULTS...`; of a measurement that is there twice the last one counts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Line = Mapping[str, Any]
MODES = {"fulltext": "full text", "semantic": "semantic", "hybrid": "hybrid", "retrieve": "retrieve"}
GROUPS = ("same", "again", "related", "unrelated")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quality_tables", description=__doc__)
    parser.add_argument("results", type=Path, nargs="+", help="files of JSON lines")
    lines = read_lines(parser.parse_args().results)
    print("\n\n".join(render_tables(lines)))


def read_lines(paths: Iterable[Path]) -> list[Line]:
    """The measurements in all files; other lines, such as printed coefficients, are left out."""
    return [
        json.loads(line)
        for path in paths
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("{")
    ]


def render_tables(lines: Sequence[Line]) -> Iterator[str]:
    """One table for each part that was measured."""
    quality = [line for line in lines if line["bench"] == "quality"]
    for part, render in (("modes", _modes), ("used", _used), ("taught", _taught), ("recovery", _recovery)):
        measured = [line for line in quality if line["part"] == part]
        if measured:
            yield render(measured)
    for bench, render in (("conversations", _conversations), ("lookup", _lookup)):
        measured = [line for line in lines if line["bench"] == bench]
        if measured:
            yield render(measured)


def difference(values: Sequence[float]) -> str:
    """`+1.2 (0.2 to 2.2)`."""
    middle, low, high = values
    return f"{_signed(middle)} ({_plain(low)} to {_plain(high)})"


def _plain(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [title, "", f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def _by(lines: Iterable[Line], *names: str) -> dict[tuple[Any, ...], list[Line]]:
    grouped: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        grouped.setdefault(tuple(line[name] for name in names), []).append(line)
    return grouped


def _place(key: Sequence[Any]) -> str:
    collection, layout, tier = key[:3]
    return f"{collection}, {layout}, {tier}"


def _modes(lines: Sequence[Line]) -> str:
    rows = []
    for key, some in _by(lines, "collection", "layout", "tier", "kind").items():
        by_mode = {line["mode"]: line for line in some}
        name = _place(key) if key[3] == "all" else f"— {key[3]}"
        for measure in ("ndcg", "mrr", "recall") if key[3] == "all" else ("ndcg",):
            over = {
                mode: next(iter(line["over"].values()), {}).get(measure) for mode, line in by_mode.items()
            }
            rows.append(
                [
                    f"{name} {measure}",
                    some[0]["queries"],
                    *(_figure(by_mode.get(mode), measure) for mode in MODES),
                    *(difference(over[mode]) if over.get(mode) else "" for mode in ("hybrid", "retrieve")),
                ]
            )
    header = ["", "queries", *MODES.values(), "hybrid − better leg", "retrieve − hybrid"]
    return _table("Search modes and the first day of retrieval", header, rows)


def _figure(line: Line | None, measure: str) -> str:
    return "" if line is None else _plain(line["figures"][measure])


def _used(lines: Sequence[Line]) -> str:
    rows = [
        [
            _place(key),
            line["queries"],
            _plain(line["against"]["before"]["ndcg"]),
            _plain(line["figures"]["ndcg"]),
            difference(line["over"]["before"]["ndcg"]),
            difference(line["over"]["hybrid"]["ndcg"]),
            line["changed_rankings"],
        ]
        for key, (*_, line) in _by(lines, "collection", "layout", "tier").items()
    ]
    header = ["nDCG", "queries", "before", "after", "change", "over hybrid", "rankings changed"]
    return _table(f"After {lines[-1]['retrievals']:,} retrievals without feedback", header, rows)


def _taught(lines: Sequence[Line]) -> str:
    rows = []
    for key, some in _by(lines, "collection", "layout", "tier", "error").items():
        by_group = {line["group"]: line for line in some}
        for against in ("before", "hybrid"):
            cells = [_change(by_group[group], against) if group in by_group else "" for group in GROUPS]
            name = f"{_place(key)}, {key[3]:.0%} wrong"
            rows.append([f"{name}: before > after" if against == "before" else "— hybrid > after", *cells])
    return _table("After simulated use, nDCG", ["", *GROUPS], rows)


def _change(line: Line, against: str) -> str:
    then, now = line["against"][against]["ndcg"], line["figures"]["ndcg"]
    return f"{_plain(then)} > {_plain(now)} {difference(line['over'][against]['ndcg'])}"


def _recovery(lines: Sequence[Line]) -> str:
    rows = []
    for key, some in _by(lines, "collection", "layout", "tier", "group").items():
        by_round = {line["honest_rounds"]: line for line in some}
        rounds = [by_round[number] for number in sorted(by_round)]
        cells = [
            f"{_plain(line['figures']['ndcg'])} {difference(line['over']['before']['ndcg'])}"
            for line in rounds
        ]
        rows.append([f"{_place(key)}: {key[3]}", _plain(rounds[0]["against"]["before"]["ndcg"]), *cells])
    header = ["nDCG", "before", "after a misled round", "1 honest", "2 honest", "3 honest"]
    return _table("Recovery from wrong feedback", header, rows)


def _conversations(lines: Sequence[Line]) -> str:
    rows = []
    for key, some in _by(lines, "layout", "tier", "words", "mode", "kind").items():
        line = some[-1]
        layout, tier, words, mode, kind = key
        name = f"{layout}, {tier}, {mode}" + ("" if words == "all" else f", {words} words")
        cells = [
            _plain(line[level][measure]) if level in line else ""
            for level in ("turn", "session")
            for measure in ("recall_5", "recall_10", "mrr")
        ]
        rows.append([name if kind == "all" else f"— {kind}", line["queries"], *cells])
    header = ["", "questions", "turn R@5", "R@10", "MRR", "session R@5", "R@10", "MRR"]
    return _table("Conversations", header, rows)


def _lookup(lines: Sequence[Line]) -> str:
    rows: list[list[object]] = []
    shares: list[str] = []
    for key, some in _by(lines, "collection", "layout", "tier", "rule").items():
        line, name = some[-1], f"{_place(key)}: {key[3]}"
        if "roc" in line:
            shares = list(line["roc"])
            rows.append(
                [name, *(f"{_plain(at['right'])} / {_plain(at['wrong'])}" for at in line["roc"].values())]
            )
        else:
            told = (
                f"{line['right']} / {line['wrong']}, {line['missed']} missed, {line['false_hits']} false hits"
            )
            rows.append([name, told])
    header = ["right / wrong at", *shares]
    return _table(
        "Cache look-ups, right and wrong answers at shares of false hits",
        header,
        ([*row, *[""] * (len(header) - len(row))] for row in rows),
    )


if __name__ == "__main__":
    main()
