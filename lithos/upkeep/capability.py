"""The upkeep capability: health, gauges, checks and note care."""

from __future__ import annotations

from typing import Final

from lithos.events.journal.broadcaster import Broadcaster
from lithos.kernel.actors.threads import Threads
from lithos.kernel.capability import Background, Capability, NavigationLink, Pages
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.metrics import Metrics
from lithos.kernel.parts import Clock
from lithos.kernel.settings import StorageConfig
from lithos.kernel.state import Gauge, HealthCheck
from lithos.kernel.values.findings import CARE, OVERVIEW
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.files import NoteFiles
from lithos.server.service_state import Gauges, GaugeThread, ServerState
from lithos.upkeep.checks.care import Care, CareSubjects, CareTasks, OverviewWarnings
from lithos.upkeep.checks.checks import Installed, RunningServer
from lithos.upkeep.checks.samples import Samples
from lithos.upkeep.checks.validation import CheckedVault
from lithos.upkeep.checks.worth import WorthCounter
from lithos.upkeep.service.project_counts import ProjectCounter
from lithos.upkeep.service.timeline import Timelines
from lithos.upkeep.state import look_at_ownership, measure_disk, measure_start

#: Maximum number of issues that a report lists for each check.
MOST_OF_CARE: Final = 200
MOST_OF_OVERVIEW: Final = 10


def make_patient(
    config: Config, clock: Clock, live: RunningServer, files: NoteFiles, catalogue: Catalogue
) -> Installed:
    """Return the input that the checks of a running server need."""
    survey = CheckedVault(config.of(StorageConfig).data_dir, files, catalogue, is_live=True)
    return Installed(config=config, clock=clock, live=live, survey=survey)


def make_care(parts: CareSubjects) -> Care:
    """Return the service that runs the checks of the console page Care."""
    return Care(CARE, MOST_OF_CARE, parts)


def make_concerns(parts: CareSubjects) -> OverviewWarnings:
    """Return the service that runs the checks of the console overview."""
    return OverviewWarnings(OVERVIEW, MOST_OF_OVERVIEW, parts)


def make_samples(metrics: Metrics, clock: Clock, broadcaster: Broadcaster, gauges: Gauges) -> Samples:
    """Return the sampler that collects the metrics for the console."""
    return Samples(
        metrics,
        Threads(),
        clock,
        head=lambda: broadcaster.head,
        subscribers=lambda: int(sum(gauges.watched(f"{kind}_active_clients") for kind in ("sse", "ws"))),
    )


UPKEEP = Capability(
    name="upkeep",
    makers=(
        ServerState,
        GaugeThread,
        Gauges,
        make_samples,
        RunningServer,
        make_patient,
        WorthCounter,
        CareSubjects,
        make_care,
        make_concerns,
        CareTasks,
        Timelines,
        ProjectCounter,
    ),
    background=(
        Background(Care, Care.run),
        Background(OverviewWarnings, OverviewWarnings.run, needs_front=True),
        Background(Samples, Samples.run, needs_front=True),
    ),
    pages=Pages(
        modules=(
            "lithos.upkeep.console.overview",
            "lithos.upkeep.console.care",
            "lithos.upkeep.console.agents",
            "lithos.upkeep.console.system",
        ),
        links=(
            NavigationLink(1, "Overview", "/console/", "o"),
            NavigationLink(7, "Agents", "/console/agents", "a"),
            NavigationLink(8, "System", "/console/system", "y"),
        ),
        tabs=(NavigationLink(4, "Care", "/console/care"),),
    ),
    front="lithos.upkeep.front",
    tools=("lithos.upkeep.tools", "lithos.upkeep.tools_projects"),
    health=(HealthCheck("ownership", 11, look_at_ownership),),
    gauges=(Gauge(10, measure_start), Gauge(100, measure_disk)),
    checks=(
        "lithos.upkeep.maintenance.doctor",
        "lithos.upkeep.model.note_issues",
        "lithos.upkeep.checks.checks_care",
        "lithos.upkeep.checks.checks_indexes",
        "lithos.upkeep.checks.checks_notes",
        "lithos.upkeep.checks.checks_storage",
        "lithos.upkeep.checks.reconcile",
    ),
)
