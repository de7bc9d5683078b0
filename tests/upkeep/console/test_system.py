"""System page: checks on demand, server state, configuration, and charts (docs/spec/console.md §2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.configuration.catalogue import SETTINGS, Config
from lithos.kernel.configuration.load import load_config
from lithos.server.console.formats import HEIGHT, WIDTH, commands, make_chart, round_up, sparkline
from lithos.server.settings import ServerConfig
from lithos.upkeep.checks.samples import ActivitySample
from lithos.upkeep.console import system
from lithos.upkeep.console.system import charts, configured
from tests.server.console.pages import Element
from tests.server.console.visiting import visiting

START = datetime(2026, 1, 1, tzinfo=UTC)


def make_samples(count: int) -> list[ActivitySample]:
    return [
        ActivitySample(
            at=START + timedelta(seconds=15 * number),
            seconds=15.0,
            calls=10,
            errors=1,
            writes=number,
            searches=2,
            write_p50=0.002,
            write_p95=0.004 + number / 1000,
            search_p50=None if number == 2 else 0.003,
            search_p95=None if number == 2 else 0.009,
            memory=200_000_000,
        )
        for number in range(count)
    ]


def table_of(page: Element, label: str) -> list[list[str]]:
    """Return the cells of the first table with this label."""
    regions = page.all("div", "table")
    region = next(each for each in regions if each.attributes["aria-label"].startswith(label))
    return [[cell.text for cell in row.walk() if cell.tag in ("th", "td")] for row in region.all("tr")]


async def test_system_page_shows_state_and_runs_checks_only_on_request(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        await person.lithos.write("A note", "See [[Nowhere]].")
        page = await person.look("/console/system")
        assert [each.text for each in page.all("h1")] == ["System"]
        assert "The checks have not run since the server started." in page.text
        assert "1 of 1 notes" in page.text
        assert str(person.lithos.server.get(Coordinator).head) in page.text
        (run,) = [link for link in page.all("a", "button") if link.text == "Run the checks"]
        checked = await person.look(run.attributes["href"].partition("#")[0])
        rows = table_of(checked, "Results of the checks")
        assert ["layout", "ok"] in [row[:2] for row in rows]
        assert {"data directory", "databases", "notes", "indexes", "clock"} <= {row[0] for row in rows}
        again = await person.look("/console/system")
        assert table_of(again, "Results of the checks") == rows


async def test_samples_are_shown_as_charts_with_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visiting(tmp_path) as person:
        empty = await person.look("/console/system")
        assert "There are no samples yet." in empty.text
        assert not empty.all("polyline")
        monkeypatch.setattr(
            "lithos.upkeep.checks.samples.Samples.taken", property(lambda _: tuple(make_samples(240)))
        )
        page = await person.look("/console/system")
        figures = page.all("figure", "chart")
        assert len(figures) == 7
        for figure in figures:
            (svg,) = figure.all("svg")
            assert svg.attributes["role"] == "img"
            (title,) = svg.all("title")
            assert title.attributes["id"] == svg.attributes["aria-labelledby"]
            assert "the figures are in the table below" in title.text
        _, newest, *others = table_of(page, "Figures per minute")
        assert newest[1:] == ["40", "4", str(236 + 237 + 238 + 239), "8", "243.0 ms", "9.0 ms", "200 MB"]
        assert len(others) == 59
        oldest = others[-1]
        assert oldest[1:] == ["40", "4", str(0 + 1 + 2 + 3), "8", "7.0 ms", "9.0 ms", "200 MB"]


def test_charts_have_gaps_for_times_without_events() -> None:
    by_key = {chart.key: chart for chart in charts(make_samples(5))}
    median, _ = by_key["search-times"].lines
    assert len(median.pieces) == 2
    assert median.last == 3.0
    assert len(by_key["write-times"].lines[0].pieces) == 1
    assert by_key["memory"].top == 200
    assert by_key["writes"].lines[0].last == 16


def test_newest_point_is_at_the_right_edge_of_the_chart() -> None:
    chart = make_chart("k", "T", "", [("one", [0.0, 3.0, 7.5, None, 1.0])], 40)
    for line in chart.lines:
        for piece in line.pieces:
            for point in piece.split():
                x, y = map(float, point.split(","))
                assert 0 <= x <= WIDTH + WIDTH / 39
                assert 0 <= y <= HEIGHT
    whole = make_chart("k", "T", "", [("one", [1.0, 2.0, 3.0])], 3).lines[0].pieces[0]
    assert whole.split()[0].startswith("0.0,")
    assert whole.split()[-1].startswith(f"{WIDTH:.1f},")
    assert sparkline([]) == ""
    assert sparkline([0.0, 0.0]) != ""


def test_chart_scale_ends_at_a_round_number() -> None:
    tops = {0: 1, 1: 1, 3: 5, 5.1: 10, 0.03: 0.05, 1234: 2000, 2.4: 2.5, 99: 100}
    assert {value: round_up(value) for value in tops} == pytest.approx(tops)


def test_settings_show_their_source_but_not_secrets(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("search:\n  max_results: 7\n")
    loaded = load_config(
        data_dir=tmp_path,
        environment={"LITHOS_AUTH_TOKEN": "the-secret", "LITHOS_EVENTS__JOURNAL_SIZE": "1234"},
        overrides={"server.port": 9999},
    )
    told = {each.key: each for each in configured(loaded.config, loaded.sources)}
    assert list(told) == list(SETTINGS)
    assert (told["server.auth_token"].value, told["server.auth_token"].source) == (
        "set",
        "environment variable LITHOS_AUTH_TOKEN",
    )
    assert told["search.max_results"].value == "7"
    assert str(told["search.max_results"].source).startswith("file ")
    assert (told["server.port"].value, told["server.port"].source) == ("9999", "the command line")
    assert told["events.journal_size"].value == "1234"
    assert (told["server.console"].value, told["server.console"].source) == ("on", None)
    assert not any("the-secret" in str(each) for each in told.values())


@pytest.mark.needs("access")
async def test_system_page_contains_no_secret(tmp_path: Path) -> None:
    async with visiting(tmp_path, server={"auth_token": "a-secret-token"}) as person:
        await person.submit("/console/login", token="a-secret-token")
        assert "a-secret" not in await person.page("/console/system?run=1")
        assert len(table_of(await person.look("/console/system?run=1"), "Settings server")) > 1


def test_every_setting_is_in_exactly_one_section() -> None:
    told = list(configured(Config(server=ServerConfig()), {}))
    grouped = system.sections(told)
    assert sum(len(rows) for _, rows in grouped) == len(SETTINGS)
    assert len({name for name, _ in grouped}) == len(grouped)


def test_only_commands_within_sentences_are_marked_as_code() -> None:
    assert commands("Run `lithos doctor` <b>now</b>.") == (
        "Run <code>lithos doctor</code> &lt;b&gt;now&lt;/b&gt;."
    )
    assert commands("An odd ` sign") == "An odd ` sign"
    assert commands("`<i>`") == "<code>&lt;i&gt;</code>"
