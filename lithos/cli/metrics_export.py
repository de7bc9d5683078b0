"""Whether and where `lithos serve` exports its metrics (`telemetry.*`, `--telemetry-console`)."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from lithos import __version__
from lithos.app import Server
from lithos.cli.session import Session
from lithos.config import TelemetryConfig
from lithos.telemetry import get_logger

if TYPE_CHECKING:
    from lithos.otlp import Export

log = get_logger("lithos.otlp")


@asynccontextmanager
async def exported_metrics(session: Session, server: Server) -> AsyncIterator[None]:
    """Export during the block, where the settings say so; leaving it takes a second at most."""
    telemetry = session.config.telemetry
    if not telemetry.enabled and not session.invocation.typed.get("telemetry_console"):
        yield
        return
    if telemetry.endpoint is None and not telemetry.console_fallback:
        log.warning(
            "metrics are not exported",
            reason="telemetry.enabled is true, but no collector is named",
            next="set telemetry.endpoint (http://localhost:4318) or telemetry.console_fallback",
        )
        yield
        return
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_export, telemetry, server)
        yield
        nursery.cancel_scope.cancel()


async def _export(telemetry: TelemetryConfig, server: Server) -> None:
    """Load OpenTelemetry beside the serving, which takes a third of a second, and export."""
    try:
        export = await trio.to_thread.run_sync(_make_export, telemetry, server, abandon_on_cancel=True)
    except ImportError as failure:
        log.warning(
            "metrics are not exported",
            reason=f"the OpenTelemetry packages are not all installed ({failure})",
            next="pip install 'lithos-server[otlp]' and restart, or set telemetry.enabled to false",
        )
        return
    await export.run()


def _make_export(telemetry: TelemetryConfig, server: Server) -> Export:
    """Raises `ImportError` where the extra `otlp` is missing."""
    from lithos import otlp

    if telemetry.enabled and telemetry.endpoint is not None:
        url = otlp.metrics_url(telemetry.endpoint)
        exporter, place = otlp.collector(url), otlp.hide_user(url)
    else:
        exporter, place = otlp.console(sys.stderr), "stderr"
    resource = otlp.make_resource(telemetry.service_name, telemetry.environment, __version__)
    source = otlp.Source(resource, server.metrics.began_ns)
    seconds = telemetry.export_interval_ms / 1000
    return otlp.Export(server.gauges.families, exporter, source, place, seconds, log)
