"""The `sessions` capability: the transcripts of AI clients, followed and searchable."""

from __future__ import annotations

from collections.abc import Sequence

from lithos.events.journal.settled_clock import SettledClock
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.capability import Background, Capability, NavigationLink, Pages, Store
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.open_stores import Occasion
from lithos.kernel.discovery import import_if_there
from lithos.kernel.parts import Clock, Parts
from lithos.kernel.settings import StorageConfig
from lithos.kernel.state import HealthCheck
from lithos.notes.service.ports import PastSessions
from lithos.notes.service.row_kinds import SESSION_IDS
from lithos.notes.writing.actor_writer import Writer
from lithos.search.embedding.embedder import Embedder
from lithos.search.index.chunk_rows import Codes, encode_rows
from lithos.search.indexing.indexer import FulltextIndexer
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.settings import SearchConfig
from lithos.sessions.answers.origins import Origins
from lithos.sessions.answers.past import SessionAnswers
from lithos.sessions.following.follower import SessionFollower
from lithos.sessions.model.masking import SecretMask
from lithos.sessions.model.passages import passages_of
from lithos.sessions.model.session import Turn
from lithos.sessions.rows.schema import SESSIONS as SESSIONS_FILE
from lithos.sessions.rows.store import Embedding, SessionStore
from lithos.sessions.service.searching import TurnSearch, model_name
from lithos.sessions.service.sessions import Sessions
from lithos.sessions.settings import SessionsConfig
from lithos.sessions.state import look_at_sessions, report_sessions


def open_sessions(occasion: Occasion) -> SessionStore:
    """Open the database of sessions. It is created when the first session is stored."""
    return SessionStore.open(occasion.private / SESSIONS_FILE, occasion.now)


def find_mask() -> SecretMask | None:
    """Return the mask of secrets, or None if it is missing. Then no transcript is read."""
    module = import_if_there("lithos.text.secrets", "masking")
    return None if module is None else SecretMask(module.mask)


def static_model(semantic: SemanticBackend) -> Embedder | None:
    """Return the static model, or None while it is loading or cannot be loaded."""
    return None if semantic.port.target is None else semantic.port.target.embedder


def embedding_of(semantic: SemanticBackend) -> Embedding:
    """Return the embedding of turns with the model that is loaded now."""
    model = static_model(semantic)
    if model is None:
        return Embedding()
    return Embedding(model_name(model), lambda turns: encode_turns(model, turns))


def encode_turns(model: Embedder, turns: Sequence[Turn]) -> list[Codes]:
    """Return the vectors of the passages of each turn."""
    passages = [passages_of(turn) for turn in turns]
    codes = encode_rows(model.encode([each for some in passages for each in some], one_core=True))
    found, begin = list[Codes](), 0
    for some in passages:
        found.append(codes[begin : begin + len(some)])
        begin += len(some)
    return found


def make_follower(
    store: SessionStore,
    config: Config,
    sessions: SessionsConfig,
    semantic: SemanticBackend,
    clock: Clock,
    settled: SettledClock,
    opening: Opening,
    words: FulltextIndexer,
    writer: Writer,
) -> SessionFollower:
    """Return the actor that follows transcripts. Notes are indexed first."""

    async def notes_first() -> None:
        await opening.complete.wait()
        await words.converged()
        await semantic.settled.wait()

    return SessionFollower(
        store,
        config.of(StorageConfig).data_dir / ".lithos",
        sessions.folders,
        sessions.keep_days,
        find_mask(),
        lambda: embedding_of(semantic),
        clock,
        settled,
        notes_first,
        lambda: writer.mailbox.stats.handled,
    )


def make_sessions(
    store: SessionStore, follower: SessionFollower, search: SearchConfig, semantic: SemanticBackend
) -> Sessions:
    """Return the service of sessions."""
    return Sessions(store, follower, TurnSearch(search), lambda: static_model(semantic))


def make_past_sessions(answers: SessionAnswers) -> PastSessions:
    """Return the service through which the tools of notes search and read sessions."""
    return answers


async def has_session(server: Parts, thing: str) -> bool:
    """Return whether a session has this id or address."""
    return thing.startswith(SESSION_IDS) and await server.get(SessionAnswers).has(thing)


SESSIONS = Capability(
    name="sessions",
    makers=(make_follower, make_sessions, Origins, SessionAnswers, make_past_sessions),
    stores=(Store(45, open_sessions),),
    background=(Background(SessionFollower, SessionFollower.run),),
    health=(HealthCheck("sessions", 14, look_at_sessions),),
    pages=Pages(
        modules=("lithos.sessions.pages",), tabs=(NavigationLink(5, "Sessions", "/console/sessions"),)
    ),
    tools=("lithos.sessions.tools",),
    holds=has_session,
    checks=("lithos.sessions.checks",),
    statistics=(report_sessions,),
)
