"""The input of checks (`Installed`), and how a check is run: isolated, with a deadline.

Checks change nothing but for dot-named probe files, which they remove.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import trio
from attrs import define, field, frozen

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.lock import OwnerRecord
from lithos.kernel.databases.sqlite import CorruptDatabase, DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.server_ports import RunServer
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.findings import Check, CheckFinding, CheckResult, Issue, fail, ok, warn
from lithos.memory.enrich.projection import Projection
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.search.index.embedder import Embedder, EmbedderUnavailable, load_embedder
from lithos.search.indexing.indexer import Visibility
from lithos.search.indexing.ports import FulltextPort
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.settings import SearchConfig
from lithos.text.chunk import ChunkSizes
from lithos.upkeep.checks.validation import CheckedVault

log = get_logger("lithos.doctor")
T = TypeVar("T")

_EXPECTED = (CorruptDatabase, DatabaseFailed, OSError)


class CheckSkipped(Exception):
    """Raised when a check lacks its input; another check reports the cause."""


@frozen
class Ownership:
    """Whether a live process owns the data directory, and what it says of itself."""

    is_live: bool
    record: OwnerRecord | None


@frozen
class RunningServer:
    """The parts of a running server that checks use."""

    catalogue: Catalogue
    semantic: SemanticBackend
    fulltext_port: FulltextPort
    visibility: Visibility
    projection: Projection


@define(eq=False, kw_only=True)
class Installed:
    """An installation that is looked at, from outside or, where `live` is given, inside of its server.

    Its configuration as far as it can be used, what cannot be (`problems`), and what was ignored in it
    (`warnings`).
    """

    config: Config
    clock: Callable[[], datetime]
    problems: Sequence[str] = ()
    warnings: Sequence[str] = ()
    #: More results to report about access to the server.
    remarks: Callable[[], Sequence[str]] = tuple
    #: Starts a server, for what only one can answer.
    run_server: RunServer | None = None
    #: How a model is loaded; the embedder that was loaded serves all checks.
    load: Callable[[str], Embedder] = load_embedder
    #: Return the notes, and read them if no check has done so yet; blocks.
    take_survey: Callable[[], CheckedVault] | None = None
    live: RunningServer | None = None
    #: Its name among several vaults.
    vault: str = ""
    #: By note id the vault and the path of the notes of the vaults that were looked at before.
    elsewhere: dict[str, tuple[str, str]] | None = None
    _survey: CheckedVault | None = None
    owner: Ownership = field(default=Ownership(False, None), init=False)
    embedder: Embedder | None = field(default=None, init=False)

    @property
    def data(self) -> Path:
        """The data directory."""
        return self.config.of(StorageConfig).data_dir

    @property
    def private(self) -> Path:
        """Where the databases are."""
        return self.data / ".lithos"

    @property
    def is_live(self) -> bool:
        """Whether a server has the files open."""
        return self.live is not None or self.owner.is_live

    @property
    def is_outside(self) -> bool:
        """Whether it is looked at from outside of a server."""
        return self.live is None

    @property
    def survey(self) -> CheckedVault:
        """The notes that were read. Raises `CheckSkipped`."""
        if self._survey is None:
            raise CheckSkipped("the notes could not be read")
        return self._survey

    @property
    def catalogue(self) -> Catalogue:
        """The notes that were read. Raises `CheckSkipped`."""
        return self.survey.catalogue

    @property
    def known_notes(self) -> Iterable[Entry]:
        """The notes, none where they could not be read."""
        return () if self._survey is None else self._survey.catalogue

    async def read_notes(self) -> CheckedVault:
        """Read the notes, unless they are known."""
        if self.take_survey is not None:
            self._survey = await look_aside(self.take_survey)
        return self.survey

    @property
    def sizes(self) -> ChunkSizes:
        """How notes are cut for the indexes."""
        return ChunkSizes(self.config.of(SearchConfig).chunk_size)

    def loaded(self, name: str) -> Embedder:
        """The model that was loaded before; a model is never loaded twice, nor downloaded."""
        if self.embedder is None:
            raise EmbedderUnavailable(name, "see the check of the embedder")
        return self.embedder


async def run_check(check: Check, patient: Installed, bound: float) -> CheckResult:
    """Run a check with a deadline of `bound` seconds; a crash or timeout becomes its result."""
    name = check.name.replace("_", " ") if check.title else check.name
    try:
        with trio.fail_after(bound):
            return CheckResult(name, tuple(await _look(check, patient)))
    except trio.TooSlowError:
        finding = fail(
            f"This check was not done after {bound:g} seconds.",
            "The disk or the network may hang: read the system log, then run doctor again.",
        )
    except CheckSkipped as reason:
        finding = warn(f"This was not looked at: {reason}.", "See the check of the notes.")
    except _EXPECTED as failure:
        finding = fail(
            f"This check could not run: {failure}.",
            "Check that the files of the data directory are there and readable.",
        )
    except Exception as failure:
        log.error("check failed", check=check.name, reason=repr(failure), exc_info=True)
        finding = fail(
            f"This check itself is broken: {type(failure).__name__}: {failure}.",
            "Report it with the log on stderr; the other checks are not affected.",
        )
    return CheckResult(name, (finding,))


async def _look(check: Check, patient: Installed) -> list[CheckFinding]:
    """An asynchronous look on the event loop, any other in a thread; issues of notes as one finding."""
    looked = check.look(patient)
    if isinstance(looked, AsyncIterable):
        found = [each async for each in looked]
    else:
        found = await look_aside(lambda: list(looked))
    return [_sum_up(check, found)] if check.title else found


def _sum_up(check: Check, issues: Sequence[Issue]) -> CheckFinding:
    if not issues:
        return ok(f"{check.title}: none.")
    first = f"{issues[0].path}: {issues[0].detail}"
    return warn(f"{check.title}: {len(issues):,}. The first is {first}.", check.way_out)


async def look_aside(call: Callable[[], T]) -> T:
    """Run a blocking check in a worker thread that is abandoned at the deadline.

    Without a deadline, a disk that hangs would block the doctor for good; a check leaves nothing to finish.
    """
    return await trio.to_thread.run_sync(call, abandon_on_cancel=True)
