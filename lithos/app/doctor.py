"""`lithos doctor`: looking at a whole installation, check by check, and saying what to do.

It changes nothing but for dot-named probe files, which it removes. Each check is by itself: one that
breaks or hangs is reported, and the others run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Final

import trio
from attrs import frozen

from lithos.actors.vector_port import ChunkSizes
from lithos.app.clock import utc_now
from lithos.app.doctor_network import Ownership, check_owner, check_port, look_at_owner
from lithos.config import Config
from lithos.core.diagnosis import CheckResult, Finding, fail, ok, warn
from lithos.front.access import AccessPolicy, open_bind_warning
from lithos.services import checks_notes, checks_storage
from lithos.services.checks_watching import check_watching
from lithos.services.diagnosis import Look, look_aside, run_check
from lithos.services.reconcile_indices import IndexSettings
from lithos.services.survey import Survey, survey_notes
from lithos.stores.embedder import Embedder, EmbedderUnavailable, load_embedder

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
        clock: Callable[[], datetime] = utc_now,
        load: Callable[[str], Embedder] | None = None,
        bound: float = BOUND,
    ) -> None:
        self._patient = patient
        self._config = patient.config
        self._tell = tell
        self._clock = clock
        self._load = load or load_embedder
        self._bound = bound
        self._ownership = Ownership(is_live=False, record=None)
        self._survey: Survey | None = None
        self._embedder: Embedder | None = None

    async def examine(self) -> list[CheckResult]:
        """Run all checks that make sense, telling each result as soon as it is there."""
        results = []
        for name, look in self._checks():
            result = await run_check(name, look, self._bound)
            self._tell(result)
            results.append(result)
        return results

    def _checks(self) -> Iterator[tuple[str, Look]]:
        """In the order in which one explains the next."""
        storage = self._config.storage
        data, private, folder = storage.data_dir, storage.data_dir / ".lithos", storage.knowledge_subdir
        yield "configuration", _at_once(lambda: check_configuration(self._patient))
        if not data.is_dir():
            yield "data directory", _at_once(lambda: [checks_storage.missing_data_directory(data)])
            yield "embedder", _aside(self._look_at_embedder)
            yield "port", self._look_at_port
            return
        yield "data directory", _aside(lambda: checks_storage.check_data_directory(data, folder))
        yield "disk space", _aside(lambda: checks_storage.check_space(data))
        yield "layout", _aside(lambda: checks_storage.check_layout(data))
        yield "owner", self._look_at_owner
        yield "port", self._look_at_port
        yield (
            "databases",
            _aside(lambda: checks_storage.check_databases(private, is_live=self._ownership.is_live)),
        )
        yield "notes", self._look_at_notes
        yield "duplicate ids", self._of_notes(checks_notes.check_duplicates)
        yield "vanished files", self._of_notes(checks_notes.check_vanished)
        yield "embedder", _aside(self._look_at_embedder)
        yield "indexes", self._of_notes(self._look_at_indexes)
        yield "watcher", self._look_at_watching
        yield "clock", _aside(self._look_at_clock)

    async def _look_at_owner(self) -> Iterable[Finding]:
        self._ownership = await look_at_owner(self._config)
        return await check_owner(self._ownership, self._config)

    async def _look_at_port(self) -> Iterable[Finding]:
        return await check_port(self._ownership, self._config)

    async def _look_at_notes(self) -> Iterable[Finding]:
        storage = self._config.storage
        if not (storage.data_dir / storage.knowledge_subdir).is_dir():
            return [checks_notes.missing_notes(storage.data_dir, storage.knowledge_subdir)]
        fraction = self._config.index.max_vanished_fraction
        survey = await look_aside(
            partial(survey_notes, storage.data_dir, storage.knowledge_subdir, fraction, self._clock())
        )
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
        def keep(embedder: Embedder) -> None:
            self._embedder = embedder

        return checks_notes.check_embedder(self._config.search.embedding_model, self._load, keep)

    def _look_at_indexes(self, survey: Survey) -> Iterable[Finding]:
        search = self._config.search
        sizes = ChunkSizes(search.chunk_size, search.chunk_max)
        settings = IndexSettings(model=search.embedding_model, load=self._loaded, sizes=sizes)
        return checks_notes.check_indexes(survey, settings)

    def _loaded(self, name: str) -> Embedder:
        """The model that was loaded before; a model is never loaded twice, nor downloaded."""
        if self._embedder is None:
            raise EmbedderUnavailable(name, "see the check of the embedder")
        return self._embedder

    async def _look_at_watching(self) -> Iterable[Finding]:
        config = self._config
        folder = config.storage.data_dir / config.storage.knowledge_subdir
        if not folder.is_dir():
            return [warn("This was not looked at: there is no folder of notes.", _SEE_NOTES)]
        return await check_watching(folder, config.index.watch_mode if config.server.watch_files else "off")

    def _look_at_clock(self) -> Iterable[Finding]:
        survey = self._survey
        times = () if survey is None else ((each.path, each.state.mtime_ns) for each in survey.catalogue)
        private, is_live = self._config.storage.data_dir / ".lithos", self._ownership.is_live
        return checks_storage.check_clock(private, times, self._clock(), is_live=is_live)


_SEE_NOTES: Final = "See the check of the notes."


def check_configuration(patient: Patient) -> Iterator[Finding]:
    """Wrong values, unknown keys, and a server that is open to all."""
    for problem in patient.problems:
        yield fail(f"{problem}.", "Correct it: no server starts like this.")
    for warning in patient.warnings:
        yield warn(f"{warning}.", "Correct the name, or take it out.")
    server = patient.config.server
    opening = open_bind_warning(AccessPolicy(server.host, server.auth_token))
    if opening is not None:
        yield warn(opening, "")
    yield ok("All values are known and allowed.")


def _at_once(look: Callable[[], Iterable[Finding]]) -> Look:
    async def run() -> Iterable[Finding]:
        await trio.lowlevel.checkpoint()
        return list(look())

    return run


def _aside(look: Callable[[], Iterable[Finding]]) -> Look:
    def run() -> Awaitable[list[Finding]]:
        return look_aside(lambda: list(look()))

    return run
