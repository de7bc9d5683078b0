"""`lithos doctor`: diagnoses an installation check by check, with advice; the checks of owner and port.

It changes nothing but for dot-named probe files, which it removes. Checks are isolated: one that fails or
hangs is reported, and the others run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import trio
from attrs import frozen

from lithos.actors.indexing.ports import ChunkSizes
from lithos.app.evaluation.check import check_knowledge, find_tests
from lithos.app.reaching import check_public_url
from lithos.app.stores import utc_now
from lithos.app.vault import open_notes, survey_of
from lithos.config.catalogue import Config
from lithos.core.findings import CheckResult, Finding, fail, ok, warn
from lithos.front.bridge.client import OwnerClient, OwnerRefuses, OwnerUnreachable
from lithos.front.server.access import AccessPolicy, open_bind_warning
from lithos.front.server.sockets import CannotListen, PortInUse, open_listeners
from lithos.services.upkeep import checks_notes, checks_storage
from lithos.services.upkeep.checks_notes import Look, look_aside, run_check
from lithos.services.upkeep.checks_storage import are_asked_for, check_tokens, check_upstream, find_upstream
from lithos.services.upkeep.inspection import Place, aside, check_files, check_folders
from lithos.services.upkeep.reconcile_indices import IndexSettings
from lithos.services.upkeep.validation import Survey
from lithos.stores.indexes.embedder import Embedder, EmbedderUnavailable, load_embedder
from lithos.stores.lock import is_owned
from lithos.stores.owner_record import OwnerRecord, read_owner
from lithos.stores.probes import name_listener

#: Seconds for a server to say its address after it took the lock, and to answer.
_ADDRESS_WAIT: Final = 3.0
_ANSWER_WAIT: Final = 5.0


@frozen
class Ownership:
    """Whether a live process owns the data directory, and what it says of itself."""

    is_live: bool
    record: OwnerRecord | None


async def look_at_owner(config: Config) -> Ownership:
    """Who owns it now; one that starts gets a moment to say its address. Raises `OSError`."""
    lock = config.storage.data_dir / ".lithos" / "lock"
    deadline = trio.current_time() + _ADDRESS_WAIT
    while True:
        is_live = await look_aside(lambda: is_owned(lock))
        record = await look_aside(lambda: read_owner(lock))
        if not is_live or (record is not None and record.url) or trio.current_time() > deadline:
            return Ownership(is_live, record)
        await trio.sleep(0.1)


async def check_owner(ownership: Ownership, config: Config) -> list[Finding]:
    """Whether the owner, if there is one, answers and is well."""
    record = ownership.record
    if not ownership.is_live:
        left = f" Process {record.pid} left its lock file, which is no obstacle." if record else ""
        return [ok(f"No server runs.{left}")]
    if record is None or record.url is None:
        who = f"process {record.pid} on {record.host}" if record else "some process"
        return [
            warn(
                f"The data directory is in use by {who}, which has told no address.",
                "It may be starting, or a command works there: run doctor again in a moment. "
                "If it stays like this, look at its log and restart it.",
            )
        ]
    who = f"process {record.pid} on {record.host}, serving {record.url} since {record.started_at}"
    client = OwnerClient(record.url, record.token or config.server.auth_token, _ANSWER_WAIT)
    try:
        health = await client.health()
    except (OwnerUnreachable, OwnerRefuses) as failure:
        return [
            fail(
                f"The owner ({who}) does not answer: {failure}",
                f"To restart it, stop process {record.pid} on {record.host} and start the server again; "
                "nothing that it acknowledged is lost.",
            )
        ]
    # Commands pass with the token of the lock file; agents, with the one configured here, might not.
    configured = OwnerClient(record.url, config.server.auth_token, _ANSWER_WAIT)
    for asking in [client, configured] if config.server.auth_token else [client]:
        try:
            await asking.call("lithos_stats", {})
        except (OwnerUnreachable, OwnerRefuses) as failure:
            asked = "this command" if asking is client else "the token that is configured here"
            return [
                *_ailments(health),
                fail(
                    f"The owner ({who}) is up, but refuses {asked}: {failure}",
                    "Give commands and agents the settings that the server was started with.",
                ),
            ]
    return [*_ailments(health), ok(f"In use by {who}; it answers.")]


def _ailments(health: Mapping[str, Any]) -> list[Finding]:
    return [
        warn(
            f"The server says of its {name}: {part.get('error', part['status'])}.",
            "Look at its log, and at the other checks.",
        )
        for name, part in health["components"].items()
        if part["status"] in ("degraded", "unavailable")
    ]


async def check_port(ownership: Ownership, config: Config) -> list[Finding]:
    """Whether the configured port is free, or taken by the owner itself."""
    host, port = config.server.host, config.server.port
    if port == 0:
        return [ok("Any free port will do (server.port 0).")]
    record = ownership.record
    if ownership.is_live and record is not None and urlsplit(record.url or "").port == port:
        return [ok(f"Port {port} is used by the owner itself.")]
    try:
        for listener in await open_listeners(host, port):
            await listener.aclose()
    except PortInUse:
        cause = f"Port {port} on {host} is in use by {await _name_user(port)}."
        way_out = "Stop that program, or choose another port with --port or server.port (LITHOS_PORT)."
        # A server on stdio listens elsewhere.
        uses_port = config.server.transport != "stdio"
        return [fail(cause, way_out) if uses_port else warn(cause, f"For HTTP: {way_out}")]
    except CannotListen as failure:
        return [fail(str(failure), "")]
    return [ok(f"Port {port} on {host} is free.")]


async def _name_user(port: int) -> str:
    process = await look_aside(lambda: name_listener(port)) or "a process that cannot be told"
    try:
        health = await OwnerClient(f"http://127.0.0.1:{port}", None, _ANSWER_WAIT).health()
        return f"another Lithos ({health['version']}) in {process}"
    except (OwnerUnreachable, OwnerRefuses, KeyError, TypeError):
        return f"another program, {process}"


#: Seconds for one check. Reading 10,000 notes takes about five, a huge database some more.
BOUND: Final = 60.0

Tell = Callable[[CheckResult], None]


@frozen(kw_only=True)
class Patient:
    """A configuration as far as it can be used, what cannot be, and what was ignored in it."""

    config: Config
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Doctor:
    """Examines one patient, once."""

    def __init__(
        self,
        patient: Patient,
        tell: Tell,
        *,
        load: Callable[[str], Embedder] | None = None,
        bound: float = BOUND,
    ) -> None:
        self._patient = patient
        self._config = patient.config
        self._tell = tell
        self._load = load or load_embedder
        self._bound = bound
        self._ownership = Ownership(is_live=False, record=None)
        self._survey: Survey | None = None
        self._embedder: Embedder | None = None

    async def examine(self) -> list[CheckResult]:
        """Run all applicable checks, reporting each result as soon as it is there."""
        results = []
        for name, look in self._checks():
            result = await run_check(name, look, self._bound)
            self._tell(result)
            results.append(result)
        return results

    def _checks(self) -> Iterator[tuple[str, Look]]:
        """In the order in which one explains the next."""
        config, storage = self._config, self._config.storage
        data, private = storage.data_dir, storage.data_dir / ".lithos"
        yield "configuration", aside(lambda: check_configuration(self._patient))
        if not data.is_dir():
            yield "data directory", aside(lambda: [checks_storage.missing_data_directory(data)])
            yield "embedder", aside(self._look_at_embedder)
            yield "port", lambda: check_port(self._ownership, config)
            return
        place = Place(data, storage.notes_folder, storage.vault)
        yield from check_folders(place)
        yield "tokens", aside(lambda: check_tokens(private, utc_now()))
        yield "owner", self._look_at_owner
        yield "port", lambda: check_port(self._ownership, config)
        if self._public_url is not None:
            yield "public address", self._look_at_public_url
        is_live, record = self._ownership.is_live, self._ownership.record
        yield "databases", aside(lambda: checks_storage.check_databases(private, is_live=is_live))
        if find_upstream(data):
            outcomes = config.server.write_outcomes
            yield "upstream", aside(lambda: check_upstream(data, is_live=is_live, outcomes=outcomes))
        yield "notes", self._look_at_notes
        yield check_files(place)
        if config.reads_attachments:
            yield "attachments", aside(lambda: checks_notes.check_attachments(open_notes(storage)))
        yield "displaced texts", aside(lambda: checks_notes.check_displaced(private))
        yield "duplicate ids", self._of_notes(checks_notes.check_duplicates)
        yield "conflict copies", self._of_notes(checks_notes.check_copies)
        yield "vanished files", self._of_notes(checks_notes.check_vanished)
        yield "embedder", aside(self._look_at_embedder)
        yield "indexes", self._of_notes(self._look_at_indexes)
        if find_tests(data):
            yield "knowledge_tests", lambda: check_knowledge(config, record, is_live=is_live)
        yield "watcher", self._look_at_watching
        yield "clock", aside(self._look_at_clock)

    async def _look_at_owner(self) -> Iterable[Finding]:
        self._ownership = await look_at_owner(self._config)
        return await check_owner(self._ownership, self._config)

    async def _look_at_public_url(self) -> Iterable[Finding]:
        address, is_live = self._public_url, self._ownership.is_live
        return [] if address is None else await check_public_url(address, utc_now, is_live=is_live)

    @property
    def _public_url(self) -> str | None:
        """The one that is configured, else that of the server that runs."""
        is_live, record = self._ownership.is_live, self._ownership.record
        running = record.public_url if is_live and record is not None else None
        return self._config.server.public_url or running

    async def _look_at_notes(self) -> Iterable[Finding]:
        storage = self._config.storage
        if not storage.notes_folder.is_dir():
            return [checks_notes.missing_notes(storage.data_dir, storage.notes_folder, storage.vault)]
        survey = await look_aside(lambda: survey_of(self._config, utc_now()))
        self._survey = survey
        return checks_notes.check_notes(survey)

    def _of_notes(self, look: Callable[[Survey], Iterable[Finding]]) -> Look:
        async def run() -> Iterable[Finding]:
            survey = self._survey
            if survey is None:
                return [warn("This was not looked at: the notes could not be read.", _SEE_NOTES)]
            return await look_aside(lambda: list(look(survey)))

        return run

    def _look_at_embedder(self) -> Iterable[Finding]:
        keep = partial(setattr, self, "_embedder")
        search = self._config.search
        return (
            *checks_notes.check_embedder(search.embedding_model, self._load, keep),
            *checks_notes.check_accurate(search.tier),
        )

    def _look_at_indexes(self, survey: Survey) -> Iterable[Finding]:
        search = self._config.search
        sizes = ChunkSizes(search.chunk_size)
        settings = IndexSettings(model=search.embedding_model, load=self._loaded, sizes=sizes)
        return checks_notes.check_indexes(survey, settings)

    def _loaded(self, name: str) -> Embedder:
        """The model that was loaded before; a model is never loaded twice, nor downloaded."""
        if self._embedder is None:
            raise EmbedderUnavailable(name, "see the check of the embedder")
        return self._embedder

    async def _look_at_watching(self) -> Iterable[Finding]:
        config = self._config
        folder = config.storage.notes_folder
        if not folder.is_dir():
            return [warn("This was not looked at: there is no folder of notes.", _SEE_NOTES)]
        mode = config.index.watch_mode if config.server.watch_files else "off"
        if config.storage.vault is not None:
            return await look_aside(lambda: checks_notes.check_vault_watching(folder, mode))
        return await checks_notes.check_watching(folder, mode)

    def _look_at_clock(self) -> Iterable[Finding]:
        survey = self._survey
        times = () if survey is None else ((each.path, each.state.mtime_ns) for each in survey.catalogue)
        private, is_live = self._config.storage.data_dir / ".lithos", self._ownership.is_live
        return checks_storage.check_clock(private, times, utc_now(), is_live=is_live)


_SEE_NOTES: Final = "See the check of the notes."


def check_configuration(patient: Patient) -> Iterator[Finding]:
    """Wrong values, unknown keys, and a server that is open to all."""
    for problem in patient.problems:
        yield fail(f"{problem}.", "Correct it: no server starts like this.")
    for warning in patient.warnings:
        yield warn(f"{warning}.", "Correct the name, or take it out.")
    server = patient.config.server
    opening = open_bind_warning(AccessPolicy(server.host, server.auth_token))
    if opening is not None and not are_asked_for(patient.config.storage.data_dir / ".lithos"):
        yield warn(opening, "")
    yield ok("All values are known and allowed.")
