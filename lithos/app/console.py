"""Composition of the web console: its pages, over the services of a running server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from quart_trio import QuartTrio

from lithos.actors.blocking import Threads
from lithos.app.server import Server
from lithos.config.catalogue import SETTINGS, Config, as_public_dict
from lithos.core.findings import Finding, ok, warn
from lithos.front.console.console import Console
from lithos.front.console.pages import (
    agents,
    files,
    graph,
    login,
    note,
    notes,
    overview,
    receipts,
    search,
    system,
    tasks,
)
from lithos.front.console.parts import ConfiguredSetting, ConsoleParts
from lithos.front.console.sessions import Sessions
from lithos.front.server.access import AccessPolicy, open_bind_warning
from lithos.front.server.admissions import WrongTokens
from lithos.front.server.ports import FrontSettings
from lithos.services.notes.browsing import Browsing
from lithos.services.notes.concerns import Concerns
from lithos.services.notes.vault_files import VaultFiles
from lithos.services.search.neighbourhood import Neighbourhoods
from lithos.services.tasks.activity import Activity
from lithos.services.tasks.agents import Agents
from lithos.services.upkeep.inspection import Inspection, Place
from lithos.services.upkeep.samples import Samples

PAGES: Final = tuple(
    module.add_routes
    for module in (
        login,
        overview,
        search,
        notes,
        note,
        files,
        graph,
        tasks,
        agents,
        receipts,
        system,
    )
)


def add_console(
    server: Server,
    settings: FrontSettings,
    sessions: Sessions,
    wrong_tokens: WrongTokens,
    samples: Samples,
    concerns: Concerns,
    app: QuartTrio,
) -> None:
    """Serve the console of a server."""
    parts = ConsoleParts(
        tools=server.tools,
        catalogue=server.catalogue,
        knowledge=server.knowledge,
        browsing=Browsing(server.catalogue, server.lineage, Threads(), server.state.clock),
        files=VaultFiles(server.files, server.catalogue, Threads(2)),
        search=server.search,
        learning=server.learning,
        neighbourhoods=Neighbourhoods(server.catalogue, server.edges, server.search.centrality),
        state=server.state,
        gauges=server.gauges,
        streams=server.streams,
        activity=Activity(server.broadcaster, server.state.coordination, server.state.reading),
        agents=Agents(server.coordinator),
        tasks=server.coordination,
        board=server.board,
        dossiers=server.dossiers,
        timelines=server.timelines,
        concerns=concerns,
        samples=samples,
        inspection=_make_inspection(server, settings),
        configuration=tuple(_configured(server.config, settings.sources)),
        clock=server.clock,
        version=settings.version,
        agent=server.console_agent,
        keyring=server.keyring,
        wrong_tokens=wrong_tokens,
        named_tokens=lambda: server.keyring.named,
        rejected=partial(server.metrics.count, "http_rejected"),
    )
    Console(parts, sessions).add_routes(app, PAGES)


def _make_inspection(server: Server, settings: FrontSettings) -> Inspection:
    storage = server.config.storage
    policy = AccessPolicy(settings.host, keyring=server.keyring)

    def configuration() -> list[Finding]:
        findings = [warn(f"{each}.", "Correct the name, or take it out.") for each in settings.warnings]
        told = (open_bind_warning(policy), server.keyring.trouble)
        findings += [warn(each, "") for each in told if each is not None]
        return [*findings, ok("All values are known and allowed.")]

    return Inspection(
        Place(storage.data_dir, storage.notes_folder, storage.vault),
        configuration,
        server.catalogue,
        server.live_check,
        server.state.clock,
    )


def _configured(config: Config, sources: Mapping[str, str]) -> Iterator[ConfiguredSetting]:
    """Every setting in the order of the sections; of a secret only whether it is set."""
    public = as_public_dict(config)
    for key, setting in SETTINGS.items():
        value: Any = public
        for name in key.split("."):
            value = value[name]
        yield ConfiguredSetting(
            key=key,
            value=_in_words(value) if not setting.secret else ("not set" if value is None else "set"),
            source=sources.get(key),
            description=setting.description,
        )


def _in_words(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items())
    return str(value)
