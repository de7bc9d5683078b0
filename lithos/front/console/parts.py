"""What the console is made of: the services behind its pages, and its settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from attrs import frozen

from lithos.catalogue.catalogue import Catalogue
from lithos.front.server.admissions import WrongTokens
from lithos.front.server.ports import SharedToolBox
from lithos.services.keyring import Keyring
from lithos.services.notes.browsing import Browsing
from lithos.services.notes.concerns import Concerns
from lithos.services.notes.knowledge import Knowledge
from lithos.services.notes.vault_files import VaultFiles
from lithos.services.retrieve.feedback import Learning
from lithos.services.search.neighbourhood import Neighbourhoods
from lithos.services.search.search import Search
from lithos.services.state import Gauges, ServerState
from lithos.services.tasks.activity import Activity
from lithos.services.tasks.agents import AccessLog, Agents
from lithos.services.tasks.board import Board
from lithos.services.tasks.coordination import Coordination
from lithos.services.tasks.dossier import Dossiers
from lithos.services.tasks.event_stream import EventStreams
from lithos.services.tasks.timeline import Timelines
from lithos.services.upkeep.inspection import Inspection
from lithos.services.upkeep.samples import Samples
from lithos.stores.tokens import Token


@frozen(kw_only=True)
class ConfiguredSetting:
    """One setting as a person may see it: `value` in words, `source` None for a default."""

    key: str
    value: str
    source: str | None
    description: str


@frozen(kw_only=True)
class ConsoleParts:
    """The services that pages use; `agent` is the name of changes unless the person chooses another."""

    tools: SharedToolBox
    catalogue: Catalogue
    knowledge: Knowledge
    browsing: Browsing
    files: VaultFiles
    search: Search
    learning: Learning
    neighbourhoods: Neighbourhoods
    state: ServerState
    gauges: Gauges
    access_log: AccessLog
    streams: EventStreams
    activity: Activity
    agents: Agents
    tasks: Coordination
    board: Board
    dossiers: Dossiers
    timelines: Timelines
    concerns: Concerns
    samples: Samples
    inspection: Inspection
    configuration: tuple[ConfiguredSetting, ...]
    clock: Callable[[], datetime]
    version: str
    agent: str
    keyring: Keyring
    #: Counts wrong tokens by address, at the login as in the header of a request.
    wrong_tokens: WrongTokens
    #: The named tokens, expired ones too.
    named_tokens: Callable[[], Sequence[Token]]
    #: Told the reason of each refusal for want of a session or a right, for `http_rejected_total`.
    rejected: Callable[[str], None]
