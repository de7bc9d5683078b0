"""How benchmarks are compared, judged and drawn: hand-computed."""

from __future__ import annotations

import json
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import attrs
import pytest
import trio

from bench.all import main as run_all
from bench.calls import CallFigures
from bench.claims import ClaimFigures
from bench.client import Latencies
from bench.comparison import CASES, Comparison
from bench.disk import write_durably
from bench.figures import Actor, Figures, Front, Memory, Writes
from bench.first_index import PARTS, index_barely
from bench.install import Installation, Package
from bench.plot import Axis, draw_plot
from bench.projection import project
from bench.revisions import Change, Place, compare_rounds, read_figures, render_changes
from bench.scrape import Histogram
from bench.sizes import Effort, actors_between
from bench.stages import Stages
from bench.starts import Starts
from bench.tables import Measured, render_growth, render_targets, series_of, write_report
from bench.targets import LARGE, MIB_OF_GB, judge, judge_installation
from bench.write import MixFigures


def latencies(p50: float, rate: float) -> Latencies:
    return Latencies(p50=p50, p95=2 * p50, p99=3 * p50, worst=9 * p50, rate=rate, processor=p50)


#: Exactly what is allowed, everywhere.
FRONT = Front(
    alone={"bare": latencies(2.0, 500), "noop": latencies(2.3, 430), "hybrid": latencies(3.45, 290)},
    together={"bare": latencies(9, 600), "noop": latencies(9, 600), "hybrid": latencies(12, 500)},
    overhead=1.15,
    search_ratio=1.5,
)
CALLS = CallFigures(
    kinds={
        kind: latencies(p50, 100)
        for kind, p50 in {
            "noop": 2.0,
            "read": 3.0,
            "list": 5.0,
            "hybrid": 6.0,
            "retrieve": 12.0,
            "context": 20.0,
        }.items()
    },
    to_noop={"read": 1.5, "list": 2.5, "hybrid": 3.0, "retrieve": 6.0},
    to_noop_processor={"read": 1.4, "list": 2.4, "hybrid": 2.9, "retrieve": 5.9},
    to_hybrid={"retrieve": 2.0},
    to_hybrid_processor={"retrieve": 2.1},
)
WRITES = Writes(
    alone=latencies(12, 150),
    update=latencies(14, 130),
    together=latencies(20, 400),
    raw=800,
    ratio=0.5,
    to_noop=6.0,
    update_to_noop=7.0,
    actors=(Actor("writer", 0.5, 20, 2.0, 4.0),),
)
MIX = MixFigures(
    searches_alone=latencies(40, 300),
    searches=latencies(50, 250),
    writes=attrs.evolve(latencies(40, 30), p95=100.0),
)
FIGURES = Figures(
    notes=10_000,
    floor_s={"read": 1.0, "parse": 1.0, "tantivy": 3.0, "encode": 4.0, "usearch": 1.0},
    index_s=25.0,
    front=FRONT,
    calls=CALLS,
    memory=Memory(300, 320),
    writes=WRITES,
    mix=MIX,
    claims=ClaimFigures(64, 500.0, 400.0, latencies(45, 700)),
    starts=Starts(first_answer=1.0, version=0.15, bridge=0.5),
    profile="the profile",
)
#: Targets of one size, in the order of the report: calls, front, writes, searches of 16, mix, first
#: index, starts.
OF_A_SIZE = 5 + 1 + 5 + 1 + 2 + 1 + 3


INSTALLED = Installation(
    install_s=20.0,
    demo_s=60.0,
    mib=350e6 / 1024**2,
    empty_mib=27.0,
    packages=(Package("a", "1.0", 9.0), Package("b", "2.0", 0.5)),
    direct=1,
)


def measured(sizes: dict[int, Figures], **more: Any) -> Measured:
    return Measured(
        **{
            "machine": "A machine.",
            "sizes": sizes,
            "installed": INSTALLED,
            "problems": (),
            "minutes": 9.0,
            **more,
        }
    )


def test_what_just_reaches_its_limit_is_met_and_a_little_more_is_missed() -> None:
    assert [target.share for target in judge({10_000: FIGURES})] == pytest.approx([1.0] * OF_A_SIZE)
    assert all(target.is_met for target in judge({10_000: FIGURES}))
    worse = attrs.evolve(
        FIGURES,
        front=attrs.evolve(FRONT, overhead=1.16, together={**FRONT.together, "hybrid": latencies(12, 499)}),
        calls=attrs.evolve(
            CALLS,
            kinds={**CALLS.kinds, "context": latencies(20.1, 49)},
            to_noop={"read": 1.51, "list": 2.51, "hybrid": 3.01},
            to_hybrid={"retrieve": 2.01},
        ),
        writes=attrs.evolve(
            WRITES,
            alone=latencies(12, 149),
            update=latencies(14, 129),
            to_noop=6.1,
            together=latencies(20, 399),
            ratio=0.49,
        ),
        mix=attrs.evolve(MIX, writes=attrs.evolve(latencies(41, 30), p95=101.0)),
        index_s=25.1,
        starts=Starts(1.01, 0.16, 0.51),
    )
    assert not any(target.is_met for target in judge({10_000: worse}))


def test_the_large_size_has_targets_of_its_own() -> None:
    large = attrs.evolve(
        FIGURES,
        notes=LARGE,
        front=attrs.evolve(FRONT, search_ratio=5.5, alone={**FRONT.alone, "hybrid": latencies(31.0, 30)}),
        memory=Memory(1_200_000_000 / 1024**2, 2_000),
        starts=Starts(9.0, 0.1, 0.1),
    )
    targets = judge({10_000: FIGURES, LARGE: large})
    assert [round(target.share, 3) for target in targets[OF_A_SIZE:]] == [1.1, round(62 / 60, 3), 1.0, 0.9]
    assert [target.is_met for target in targets[OF_A_SIZE:]] == [False, False, True, True]


def test_writes_beside_searchers_are_judged_in_a_thousand_notes_where_they_were_measured() -> None:
    small = attrs.evolve(FIGURES, notes=1_000, mix=attrs.evolve(MIX, writes=latencies(20, 30)))
    named = [target for target in judge({1_000: small, 10_000: FIGURES}) if "beside 14" in target.name]
    assert [(target.name[-11:], target.share) for target in named] == [
        (" notes, p50", 0.5),
        (" notes, p95", 0.4),
    ]
    assert "1,000 notes" in named[0].name


def test_the_report_names_what_was_missed_and_shows_the_plot() -> None:
    missed = attrs.evolve(FIGURES, writes=attrs.evolve(WRITES, ratio=0.25))
    beside = "# HEAD beside bee6260\n\nWritten.\n\n## Starts\n\n| Figure |\n"
    report = write_report(measured({10_000: missed}, beside=beside), "report.svg")
    assert "\n\n## HEAD beside bee6260\n\nWritten.\n\n### Starts\n\n| Figure |\n\n## Calls" in report
    (row,) = [line for line in report.splitlines() if line.startswith("| acknowledged writes")]
    assert row.endswith("| at least 0.5x | 0.25x (400 /s beside 800 /s) | 2.00 | **missed** |")
    assert "Missed: acknowledged writes beside raw durable files by 4 threads, 16 clients\n" in report
    assert "Not measured" not in report
    for part in (
        "](report.svg)",
        "the profile",
        "| sum | 10.00 |",
        "| writer | 50% | 20 | 2.0 | 4.0 |",
        "| a | 1.0 | 9 |",
        "| 10,000 | read | 3.00 | 6.00 | 100 | 1.50 | 1.40 |  |",
        "| 10,000 | retrieve | 12.00 | 24.00 | 100 | 6.00 | 5.90 | 2.00 |",
        "| 10,000 | update | 14.00 | 28.00 | 130 | 7.00 |  |  |",
        "| 10,000 | a claim, 64 agents racing | 45.00 | 90.00 | 700 |  |  |  |",
    ):
        assert part in report
    assert render_targets(judge({10_000: FIGURES})).count("| met |") == OF_A_SIZE


def test_a_stage_that_failed_is_named_and_the_others_are_told() -> None:
    alone = Figures(10_000, starts=Starts(0.9, 0.1, 0.4), problems=("calls: not done within 180 s",))
    report = write_report(
        measured({10_000: alone}, installed=None, problems=["installation: no network"]), "report.svg"
    )
    assert "* 10,000 notes, calls: not done within 180 s\n* installation: no network\n" in report
    assert [target.name for target in judge({10_000: alone})] == [
        "second start to the first answer, 10,000 notes",
        "`lithos --version`",
        "stdio bridge greeted",
    ]
    assert "| 10,000 |  |  |  |  |  |  |  | 0.90 |" in report
    nothing = write_report(measured({100: Figures(100)}, installed=None), "report.svg")
    assert "Every target was met" not in nothing
    assert "Nothing was measured" in nothing


def test_stages_outlive_failures_and_end_in_time() -> None:
    stages = Stages(until=time.monotonic() + 3_600)

    def refuse(limit: float) -> int:
        raise SystemExit(f"no server | {limit:.0f}")

    async def hang() -> None:
        await trio.sleep_forever()

    assert stages.run("one", 60, lambda limit: limit) == 60
    assert stages.run("two", 60, refuse) is None
    with patch("bench.stages.LEAST", 0.0):
        assert stages.run_async("three", 0.01, hang) is None
    assert Stages(until=time.monotonic()).run("four", 60, refuse) is None
    assert stages.problems == ["two: SystemExit: no server / 60", "three: not done within 0 s"]
    assert set(stages.seconds) == {"one", "two", "three"}


def test_a_stack_that_cannot_be_closed_is_a_problem_and_no_more() -> None:
    stages, stack = Stages(until=0.0), ExitStack()
    stack.callback(lambda: 1 / 0)
    stages.close(stack)
    assert stages.problems == ["end: ZeroDivisionError: division by zero"]


def test_a_million_notes_are_projected_from_the_two_largest_sizes() -> None:
    """Memory 300 MiB + 7.5 MiB a thousand notes."""

    def at(notes: int, memory: float, p50: float, start: float) -> Figures:
        front = attrs.evolve(FRONT, alone={**FRONT.alone, "hybrid": latencies(p50, 9)})
        return Figures(notes, front=front, memory=Memory(memory, memory), starts=Starts(start, 0.1, 0.1))

    sizes = {1_000: at(1_000, 9, 9, 9), 2_500: at(2_500, 318.75, 1, 1.0), 10_000: at(10_000, 375, 2, 1.3)}
    memory, start, search = project(sizes)
    assert memory.linear == pytest.approx(7_800 / MIB_OF_GB)
    assert memory.target.share == pytest.approx(7_800 / MIB_OF_GB / 4.5)
    assert start.linear == pytest.approx(1.3 + 0.3 * 990 / 7.5)
    assert search.linear == pytest.approx(4 + 2 * 990 / 7.5)
    assert (memory.target.is_met, start.target.is_met, search.sizes) == (False, False, (2_500, 10_000))
    assert project({10_000: FIGURES}) == []


def test_an_installation_is_judged_by_its_size_and_the_wait_for_the_demo() -> None:
    assert [round(target.share, 6) for target in judge_installation(INSTALLED)] == [1.0, 1.0]
    larger = attrs.evolve(INSTALLED, mib=340.0, demo_s=61.0)
    assert not any(target.is_met for target in judge_installation(larger))


def test_growth_is_told_as_an_exponent() -> None:
    """Ten times the notes: ten times the time is 1, a hundred times 2, the same 0."""
    large = attrs.evolve(
        FIGURES, notes=LARGE, index_s=250.0, memory=Memory(30_000, 1), starts=Starts(1.0, 0.1, 0.1)
    )
    table = render_growth({10_000: FIGURES, LARGE: large})
    exponents = {line.split(" | ")[0]: line.split(" | ")[1] for line in table.splitlines()[2:]}
    assert exponents == {
        "| hybrid search p95, ms": "0.00",
        "| write p50, ms": "0.00",
        "| memory, MiB": "2.00",
        "| first start, s": "1.00",
        "| second start, s": "0.00",
    }


def test_an_axis_puts_powers_of_ten_at_equal_distances() -> None:
    axis = Axis.over([20, 3_000], 0, 300)
    assert [axis.place(tick) for tick in axis.ticks()] == [0, 100, 200, 300]
    assert axis.ticks() == [10, 100, 1_000, 10_000]
    assert Axis.over([100], 0, 10).ticks() == [100, 1000]


def test_the_plot_is_an_image_with_a_point_for_each_value() -> None:
    sizes = {10_000: FIGURES, LARGE: attrs.evolve(FIGURES, notes=LARGE, memory=Memory(900, 900))}
    image = ElementTree.fromstring(draw_plot({**series_of(sizes), "a<b & c": {1_000: 1.0}}, "notes"))
    name = "{http://www.w3.org/2000/svg}"
    assert len(image.findall(f"{name}circle")) == 2 * 5 + 1
    assert [line.get("points", "").count(" ") for line in image.findall(f"{name}polyline")] == [1] * 5 + [0]
    assert "a<b & c" in [text.text for text in image.findall(f"{name}text")]


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
    assert render_changes([change]).splitlines()[1].split() == ["ms", "2", "3.8", "2.00", "1.90..2.20", "*"]


def test_quantile_is_interpolated_in_its_bucket() -> None:
    """The rule of Prometheus: 10 calls, 4 below 1 ms, 4 more below 10 ms, 2 beyond every bound."""
    durations = Histogram((0.001, 0.01, float("inf")), (4, 8, 10), 1.0)
    assert durations.quantile(0.2) == pytest.approx(0.0005)
    assert durations.quantile(0.5) == pytest.approx(0.001 + 0.009 * 1 / 4)
    assert durations.quantile(0.95) == 0.01, "the last finite bound is all that is known"
    assert Histogram((0.001, float("inf")), (0, 0), 0.0).quantile(0.5) is None


def test_actors_are_told_by_what_they_did_in_between() -> None:
    before = {"writer": Histogram((0.01, float("inf")), (4, 4), 1.0)}
    after = {
        "writer": Histogram((0.01, float("inf")), (14, 14), 1.5),
        "idle": Histogram((0.01, float("inf")), (0, 0), 0.0),
        "publisher": Histogram((0.01, float("inf")), (0, 3), 1.5),
    }
    assert actors_between(before, after, seconds=2.0) == (
        Actor("publisher", 0.75, 3, 10.0, 10.0),
        Actor("writer", 0.25, 10, 5.0, 9.5),
    )


def test_the_floor_is_measured_with_the_very_bytes(tmp_path: Path) -> None:
    contents = [b"one", b"two" * 1000, b"", b"four", b"five"]
    assert write_durably(tmp_path / "disk", contents) > 0
    written = sorted((tmp_path / "disk").iterdir())
    assert [(path.name, path.read_bytes()) for path in written] == [
        (f"{number}.md", content) for number, content in enumerate(contents)
    ]


def test_indexing_with_the_libraries_alone_tells_every_part(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\ntitle: A\n---\n\nSome words.\n")
    (tmp_path / "b.md").write_text("No frontmatter.\n")
    assert tuple(index_barely(tmp_path)) == PARTS


class FakePlace(Place):
    """A revision whose benchmarks tell these figures; one of them may fail."""

    def run(self, module: str, *arguments: str, timeout: float | None = None) -> str:
        assert Path(arguments[arguments.index("--data") + 1], "knowledge").is_dir()
        if module == "bench.write" and self.revision == "new":
            raise SystemExit("bench.write does not work with new; see above.")
        factor = {"old": 1, "lame": 2}.get(self.revision, 0.5)
        if module == "bench.calls":
            return json.dumps({"bench": "calls", "to_noop": {"read": 3 * factor}, "read": {"p50": factor}})
        if module == "bench.starts":
            return json.dumps({"bench": "starts", "first_answer": 2 * factor, "rounds": 1})
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
    assert len(comparison.problems) == 2, "what failed is not tried again"


def test_the_newest_revision_stands_beside_each_older_one_and_one_that_fails_costs_the_others_nothing(
    tmp_path: Path,
) -> None:
    class Lame(FakePlace):
        def run(self, module: str, *arguments: str, timeout: float | None = None) -> str:
            if module == "bench.starts":
                raise SystemExit("bench.starts does not work with lame; see above.")
            return super().run(module, *arguments, timeout=timeout)

    kinds = ((FakePlace, "old"), (Lame, "lame"), (FakePlace, "newest"))
    places = [place(name, tmp_path / name, tmp_path) for place, name in kinds]
    comparison = Comparison(places, minutes=8, notes=100)
    list(comparison.run(3))
    report = comparison.render()
    assert "| Figure | old | lame | newest | To old | To lame |" in report
    assert "| to_noop.read | 3 | 6 | 1.5 | 0.50 (0.50 to 0.50) * | 0.25 (0.25 to 0.25) * |" in report
    assert "| first_answer | 2 |  | 1 | 0.50 (0.50 to 0.50) * |  |" in report
    assert comparison.problems == [
        "starts: lame: SystemExit: bench.starts does not work with lame; see above."
    ]


def test_no_round_begins_that_would_end_too_late(tmp_path: Path) -> None:
    places = FakePlace("old", tmp_path / "old", tmp_path), FakePlace("new", tmp_path / "new", tmp_path)
    comparison = Comparison(places, minutes=0, notes=100)
    list(comparison.run(5))
    assert "rounds: 1" in comparison.render()
    assert "rounds: 2" not in comparison.render()


def test_one_command_writes_the_report_though_a_size_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The largest size is measured last; what was measured before it is in the report and the JSON line."""
    asked: list[int] = []

    def measure_size(notes: int, usual: int, effort: Effort, until: float) -> Figures:
        asked.append(notes)
        if notes == 300_000:
            assert "| 10,000 | read |" in (tmp_path / "report.md").read_text(), "written before"
            raise OSError("no room")
        return attrs.evolve(FIGURES, notes=notes, memory=Memory(notes / 100, 9), problems=())

    with (
        patch("bench.all.measure_size", measure_size),
        patch("bench.all.measure_installation", return_value=INSTALLED),
        patch("bench.all.end_by_signal"),
    ):
        run_all(["--out", str(tmp_path / "report.md"), "--largest", "300000"])
    assert asked == [1_000, 10_000, LARGE, 300_000]
    report = (tmp_path / "report.md").read_text()
    for part in (
        "* 300,000 notes, OSError: no room\n",
        "| 100,000 | read | 3.00 |",
        "resident memory, 1,000,000 notes, projected",
        "## Installation",
    ):
        assert part in report
    assert (tmp_path / "report.svg").read_text().startswith("<svg")
    told = json.loads(capsys.readouterr().out)
    assert told["not_measured"] == ["300,000 notes, OSError: no room"]
    assert list(told["sizes"]) == ["1000", "10000", "100000", "300000"]


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
