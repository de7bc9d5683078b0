"""`lithos serve` exports its metrics when told to, and serves on when it cannot."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import Lithos, running_lithos, until

pytestmark = pytest.mark.slow

INSTALL = "pip install 'lithos-server[otlp]'"


def lines_of(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines()]


def wait_for(text: str, server: Lithos) -> None:
    """Wait until the server's log holds the text; a request is what passes the time."""
    until(lambda: server.health() and text in server.log(), server.log)


def without_packages(folder: Path) -> dict[str, str]:
    """An environment in which Python finds no OpenTelemetry SDK."""
    hidden = ("opentelemetry.sdk", "opentelemetry.exporter")
    (folder / "sitecustomize.py").write_text(
        "import sys\n" + "".join(f"sys.modules[{name!r}] = None\n" for name in hidden)
    )
    # Before what is there already: the server under test may be found through it.
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(folder), inherited] if inherited else [str(folder)])}


def test_without_the_packages_the_server_serves_and_names_what_to_install(tmp_path: Path) -> None:
    settings = {"LITHOS_OTEL_ENABLED": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    with running_lithos(tmp_path / "data", env=without_packages(tmp_path) | settings) as server:
        wait_for("metrics are not exported", server)
    told = [line for line in lines_of(server.log()) if line["level"] != "info"]
    assert [line["message"] for line in told] == ["metrics are not exported"]
    assert INSTALL in told[0]["next"]
    assert "opentelemetry" in told[0]["reason"]


def test_console_telemetry_goes_to_stderr(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    env = {"LITHOS_TELEMETRY__SERVICE_NAME": "notes"}
    with running_lithos(tmp_path / "data", "--telemetry-console", env=env) as server:
        wait_for("resource_metrics", server)
        assert server.stop() == 0
        assert server.process.stdout is not None
        assert server.process.stdout.read() == b""
    exports = [line for line in lines_of(server.log()) if "resource_metrics" in line]
    (resource,) = exports[-1]["resource_metrics"]
    assert resource["resource"]["attributes"]["service.name"] == "notes"
    assert "lithos_documents" in {metric["name"] for metric in resource["scope_metrics"][0]["metrics"]}


def test_a_collector_that_never_answers_holds_neither_start_nor_stop(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env = {
            "LITHOS_OTEL_ENABLED": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "NO_PROXY": "127.0.0.1",
        }
        with running_lithos(tmp_path / "data", env=env) as server:
            client, _ = silent.accept()
            with client:
                assert client.recv(1)
                assert server.stop() == 0
    assert [line["message"] for line in lines_of(server.log()) if line["level"] == "warning"] == [
        "metrics are not exported"
    ]
