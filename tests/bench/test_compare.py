"""Revisions that are compared: the figures of a report, their ratios, and the table."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import attrs
import pytest

from bench.compare import CASES, Case, Comparison
from bench.revisions import Change, Place, compare_rounds, read_figures


def test_figures_are_every_number_of_a_report_by_its_path() -> None:
    one = {
        "bench": "search",
        "clients_1": {"hybrid": {"p50": 2}},
        "name": "x",
        "ok": True,
        "machine": {"load": 9},
    }
    assert read_figures(f"progress\n{json.dumps(one)}\n") == {"clients_1.hybrid.p50": 2.0}
    two = [json.dumps({"bench": name, "rate": 1.5}) for name in ("events.delivery", "events.journal")]
    assert read_figures("\n".join(two)) == {"events.delivery.rate": 1.5, "events.journal.rate": 1.5}


def test_a_change_is_the_median_of_the_ratios_inside_the_rounds() -> None:
    """A busy second round slows both: ratios 2, 2.2 and 1.9, whatever the medians say."""
    old = [{"ms": 1.0, "notes": 10.0, "zero": 0.0}, {"ms": 10.0, "notes": 10.0, "zero": 1.0}]
    new = [{"ms": 2.0, "notes": 10.0, "zero": 1.0}, {"ms": 22.0, "notes": 10.0, "zero": 2.0}]
    pairs = [*zip(old, new, strict=True), ({"ms": 2.0, "notes": 10.0}, {"ms": 3.8, "notes": 10.0})]
    (change,) = compare_rounds(pairs)
    assert change == Change("ms", old=2.0, new=3.8, ratio=2.0, lowest=1.9, highest=2.2)
    assert change.agrees
    assert not attrs.evolve(change, lowest=0.9).agrees


class FakePlace(Place):
    """A revision whose benchmarks tell these figures; one of them may fail."""

    def run(self, module: str, *arguments: str, timeout: float | None = None) -> str:
        assert Path(arguments[arguments.index("--data") + 1], "knowledge").is_dir()
        if module == "bench.write" and self.revision == "new":
            raise SystemExit("bench.write does not work with new; see above.")
        factor = {"old": 1, "lame": 2}.get(self.revision, 0.5)
        if module == "bench.calls":
            return json.dumps({"bench": "calls", "to_noop": {"read": 3 * factor}, "read": {"p50": factor}})
        if "again" in arguments:
            return json.dumps({"bench": "start", "again": {"first_answer": 2 * factor}, "rounds": 1})
        return json.dumps({"bench": "start", "first": {"searchable_s": 9 * factor, "listening_s": factor}})


def test_the_usual_comparison_tells_every_case_but_the_one_that_failed(tmp_path: Path) -> None:
    places = FakePlace("old", tmp_path / "old", tmp_path), FakePlace("new", tmp_path / "new", tmp_path)
    comparison = Comparison(places, minutes=8, notes=100)
    told = len(list(comparison.run(2)))
    report = comparison.render()
    assert told == 1 + 2 * len(CASES)
    assert "| to_noop.read | 3 | 1.5 | 0.50 (0.50 to 0.50) * |" in report
    assert "## Starts, 100 notes, rounds: 2\n" in report
    assert "| first.searchable_s | 9 | 4.5 | 0.50 (0.50 to 0.50) * |" in report
    assert "listening_s" not in report
    assert "* durable writes: new: SystemExit: bench.write does not work with new; see above." in report
    assert len(comparison.failed) == 2, "what failed is not tried again"


def test_the_newest_revision_stands_beside_each_older_one_and_one_that_fails_costs_the_others_nothing(
    tmp_path: Path,
) -> None:
    class Lame(FakePlace):
        def run(self, module: str, *arguments: str, timeout: float | None = None) -> str:
            if "again" in arguments:
                raise SystemExit("bench.start does not work with lame; see above.")
            return super().run(module, *arguments, timeout=timeout)

    kinds = ((FakePlace, "old"), (Lame, "lame"), (FakePlace, "newest"))
    places = [place(name, tmp_path / name, tmp_path) for place, name in kinds]
    comparison = Comparison(places, minutes=8, notes=100)
    list(comparison.run(3))
    report = comparison.render()
    assert "| Figure | old | lame | newest | To old | To lame |" in report
    assert "| to_noop.read | 3 | 6 | 1.5 | 0.50 (0.50 to 0.50) * | 0.25 (0.25 to 0.25) * |" in report
    assert "| again.first_answer | 2 |  | 1 | 0.50 (0.50 to 0.50) * |  |" in report
    assert list(comparison.failed.values()) == [
        "starts: lame: SystemExit: bench.start does not work with lame; see above."
    ]


def test_no_round_begins_that_would_end_too_late(tmp_path: Path) -> None:
    places = FakePlace("old", tmp_path / "old", tmp_path), FakePlace("new", tmp_path / "new", tmp_path)
    comparison = Comparison(places, minutes=0, notes=100)
    list(comparison.run(5))
    assert "rounds: 1" in comparison.render()
    assert "rounds: 2" not in comparison.render()


@pytest.mark.slow
def test_a_benchmark_that_takes_too_long_ends_with_the_processes_it_has_started(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "child.wait()\n"
    )
    with pytest.raises(subprocess.TimeoutExpired):
        Place("old", tmp_path, tmp_path).run("slow", timeout=10)
    child = Path(f"/proc/{(tmp_path / 'pid').read_text()}")
    until = time.monotonic() + 10
    while child.exists() and "\nState:\tZ" not in (child / "status").read_text():
        assert time.monotonic() < until, "its process goes on"
        time.sleep(0.01)
    (tmp_path / "good.py").write_text("print('told')\n")
    assert Place("old", tmp_path, tmp_path).run("good", timeout=60) == "told\n"
    (tmp_path / "bad.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(SystemExit, match="bad does not work with old"):
        Place("old", tmp_path, tmp_path).run("bad", timeout=60)


def test_one_benchmark_needs_no_notes_and_shows_all_its_figures(tmp_path: Path) -> None:
    class Bare(Place):
        def run(self, module: str, *arguments: str, timeout: float | None = None) -> str:
            assert arguments == ("--rounds", "1", "--quick")
            return json.dumps({"bench": "events", "rate": 2.0 if self.revision == "old" else 1.0})

    places = Bare("old", tmp_path / "old", tmp_path), Bare("new", tmp_path / "new", tmp_path)
    comparison = Comparison(places, minutes=8, cases=[Case("events", "events", 0, ("--quick",), ".*")])
    list(comparison.run(2))
    report = comparison.render()
    assert "## Events, rounds: 2\n" in report
    assert "| rate | 2 | 1 | 0.50 (0.50 to 0.50) * |" in report
