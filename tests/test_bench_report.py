"""How benchmarks are compared, judged and drawn: hand-computed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import attrs
import pytest

from bench.client import Latencies
from bench.compare import Change, compare_rounds, read_figures, render_changes
from bench.disk import write_durably
from bench.first_index import PARTS, index_barely
from bench.install import Installation, Package
from bench.plot import Axis, draw_plot
from bench.sizes import actors_between
from bench.starts import Starts
from bench.tables import render_growth, render_targets, series_of, write_report
from bench.targets import LARGE, Actor, Figures, judge, judge_installation
from lithos.cli.top.view import Histogram


def latencies(p50: float, rate: float) -> Latencies:
    return Latencies(p50=p50, p95=2 * p50, p99=3 * p50, worst=9 * p50, rate=rate, processor=p50)


#: Exactly what is allowed, everywhere.
FIGURES = Figures(
    notes=10_000,
    index_s=15.0,
    floor_s={"read": 1.0, "parse": 1.0, "tantivy": 3.0, "encode": 4.0, "usearch": 1.0},
    alone={"bare": latencies(2.0, 500), "noop": latencies(2.3, 430), "hybrid": latencies(3.45, 290)},
    together={"bare": latencies(9, 600), "noop": latencies(9, 600), "hybrid": latencies(12, 480)},
    overhead=1.15,
    search_ratio=1.5,
    resident_mib=300,
    peak_mib=320,
    write_alone=latencies(5, 200),
    write_together=latencies(20, 700),
    raw_files_per_s=1400,
    write_ratio=0.5,
    starts=Starts(first_answer=1.0, version=0.15, bridge=0.5),
    actors=(Actor("writer", 0.5, 20, 2.0, 4.0),),
)


INSTALLED = Installation(
    install_s=20.0,
    demo_s=60.0,
    mib=350e6 / 1024**2,
    packages=(Package("a", "1.0", 9.0), Package("b", "2.0", 0.5)),
    direct=1,
)


def test_what_just_reaches_its_limit_is_met_and_a_little_more_is_missed() -> None:
    """480 searches a second are not 500, but 80 % of 600 no-ops."""
    assert [target.share for target in judge({10_000: FIGURES})] == pytest.approx([1.0] * 8)
    assert all(target.is_met for target in judge({10_000: FIGURES}))
    worse = attrs.evolve(
        FIGURES,
        overhead=1.16,
        search_ratio=1.51,
        together={**FIGURES.together, "hybrid": latencies(12, 479)},
        write_ratio=0.49,
        index_s=15.1,
        starts=Starts(1.01, 0.16, 0.51),
    )
    assert not any(target.is_met for target in judge({10_000: worse}))
    busy = attrs.evolve(FIGURES, together={"noop": latencies(1, 9000), "hybrid": latencies(9, 501)})
    assert [target.is_met for target in judge({10_000: busy})][2], "500 a second are enough"


def test_the_large_size_has_targets_of_its_own() -> None:
    large = attrs.evolve(
        FIGURES,
        notes=LARGE,
        alone={**FIGURES.alone, "hybrid": latencies(31.0, 30)},
        resident_mib=1_200_000_000 / 1024**2,
        starts=Starts(9.0, 0.1, 0.1),
    )
    targets = judge({10_000: FIGURES, LARGE: large})
    assert [round(target.share, 3) for target in targets[8:]] == [round(62 / 60, 3), 1.0, 0.9]
    assert [target.is_met for target in targets[8:]] == [False, True, True]


def test_the_report_names_what_was_missed_and_shows_the_plot() -> None:
    missed = attrs.evolve(FIGURES, write_ratio=0.25)
    report = write_report(
        "A machine.", judge({10_000: missed}), {10_000: missed}, INSTALLED, "the profile", "report.svg"
    )
    (row,) = [line for line in report.splitlines() if line.startswith("| acknowledged writes")]
    assert row.endswith("| at least 0.5x | 0.25x (700 /s beside 1400 /s) | 2.00 | **missed** |")
    assert "Missed: acknowledged writes beside raw durable files by 4 threads, 16 clients\n" in report
    for part in (
        "](report.svg)",
        "the profile",
        "| sum | 10.00 |",
        "| writer | 50% | 20 | 2.0 | 4.0 |",
        "| a | 1.0 | 9 |",
    ):
        assert part in report
    assert render_targets(judge({10_000: FIGURES})).count("| met |") == 8


def test_an_installation_is_judged_by_its_size_and_the_wait_for_the_demo() -> None:
    assert [round(target.share, 6) for target in judge_installation(INSTALLED)] == [1.0, 1.0]
    larger = attrs.evolve(INSTALLED, mib=340.0, demo_s=61.0)
    assert not any(target.is_met for target in judge_installation(larger))


def test_growth_is_told_as_an_exponent() -> None:
    """Ten times the notes: ten times the time is 1, a hundred times 2, the same 0."""
    large = attrs.evolve(
        FIGURES, notes=LARGE, index_s=150.0, resident_mib=30_000, starts=Starts(1.0, 0.1, 0.1)
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
    sizes = {10_000: FIGURES, LARGE: attrs.evolve(FIGURES, notes=LARGE, resident_mib=900)}
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
