"""Which settings export metrics, and where; these tests need no OpenTelemetry."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

import lithos
from lithos.cli.commands import hosting
from lithos.cli.commands.hosting import exported_metrics
from lithos.cli.options import parse_arguments
from lithos.cli.session import Session
from lithos.config.catalogue import Config
from lithos.config.sections import TelemetryConfig
from lithos.metrics import Metrics


async def no_families() -> list[Any]:
    return []


def fake_server() -> Any:
    """As much of a server as is asked for."""
    return SimpleNamespace(metrics=Metrics(), gauges=SimpleNamespace(families=no_families))


def session_of(*arguments: str, **telemetry: Any) -> Session:
    return Session(parse_arguments([*arguments, "serve"]), Config(telemetry=TelemetryConfig(**telemetry)))


async def run_export(session: Session) -> None:
    """Enter, let everything happen that can, and leave."""
    async with exported_metrics(session, fake_server()):
        await trio.testing.wait_all_tasks_blocked()


def fields_of(record: logging.LogRecord) -> dict[str, str]:
    return dict(vars(record)["lithos_fields"])


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[TelemetryConfig]:
    """The settings with which exports were begun; nothing is exported."""
    begun: list[TelemetryConfig] = []

    async def note(telemetry: TelemetryConfig, server: object) -> None:
        begun.append(telemetry)

    monkeypatch.setattr(hosting, "_export", note)
    return begun


async def test_only_these_settings_export_and_the_others_are_silent(
    loaded: list[TelemetryConfig], caplog: pytest.LogCaptureFixture
) -> None:
    nowhere, console = {"endpoint": "http://127.0.0.1:1"}, {"console_fallback": True}
    exporting = ([], {"enabled": True} | nowhere), ([], {"enabled": True} | console)
    for arguments, telemetry in (*exporting, (["--telemetry-console"], console)):
        await run_export(session_of(*arguments, **telemetry))
        assert len(loaded) == 1, (arguments, telemetry)
        loaded.clear()
    caplog.clear()
    for telemetry in ({}, nowhere, console):
        await run_export(session_of(**telemetry))
        assert (loaded, caplog.records) == ([], []), telemetry


async def test_an_export_to_nowhere_is_one_warning(
    loaded: list[TelemetryConfig], caplog: pytest.LogCaptureFixture
) -> None:
    await run_export(session_of(enabled=True))
    assert loaded == []
    (record,) = caplog.records
    assert "telemetry.endpoint" in fields_of(record)["next"]


async def test_missing_packages_are_one_warning_that_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "lithos.otlp", None)
    monkeypatch.delattr(lithos, "otlp", raising=False)
    session = session_of(enabled=True, endpoint="http://127.0.0.1:1")
    async with exported_metrics(session, fake_server()):
        while not caplog.records:
            await trio.lowlevel.checkpoint()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "pip install 'lithos-server[otlp]'" in fields_of(record)["next"]


@pytest.mark.parametrize(
    ("telemetry", "place"),
    [
        ({"enabled": True, "endpoint": "http://me:secret@127.0.0.1:1"}, "http://127.0.0.1:1/v1/metrics"),
        ({"enabled": True, "console_fallback": True}, "stderr"),
        (
            {"enabled": True, "console_fallback": True, "endpoint": "127.0.0.1:1"},
            "http://127.0.0.1:1/v1/metrics",
        ),
        # Nobody switched the export on: the endpoint may be there for other programs.
        ({"console_fallback": True, "endpoint": "http://127.0.0.1:1"}, "stderr"),
    ],
)
def test_the_collector_comes_before_the_console(telemetry: dict[str, Any], place: str) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    made = hosting._make_export(TelemetryConfig(**telemetry), fake_server())
    assert made._place == place
    assert made._interval == 30.0
