"""What the console is made of: the services behind its pages, and its settings."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from attrs import field, frozen

from lithos.catalogue.catalogue import Catalogue
from lithos.front.server.ports import ToolBox
from lithos.services.notes.knowledge import Knowledge
from lithos.services.retrieve.feedback import Learning
from lithos.services.search.search import Search
from lithos.services.state import Gauges, ServerState
from lithos.services.tasks.agents import AccessLog, Agents
from lithos.services.tasks.board import Board
from lithos.services.tasks.coordination import Coordination
from lithos.services.tasks.dossier import Dossiers
from lithos.services.tasks.event_stream import EventStreams
from lithos.services.tasks.timeline import Timelines


@frozen(kw_only=True)
class ConsoleParts:
    """The services that pages use; `agent` is the name of changes unless the person chooses another."""

    tools: ToolBox
    catalogue: Catalogue
    knowledge: Knowledge
    search: Search
    learning: Learning
    state: ServerState
    gauges: Gauges
    access_log: AccessLog
    streams: EventStreams
    agents: Agents
    tasks: Coordination
    board: Board
    dossiers: Dossiers
    timelines: Timelines
    clock: Callable[[], datetime]
    version: str
    agent: str
    auth_token: str | None = field(default=None, repr=False)
