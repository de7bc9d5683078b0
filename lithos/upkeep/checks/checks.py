"""The input of checks (`Installed`), and a function that runs one isolated check with a deadline.

Checks write only dot-named probe files, and remove them afterwards.
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
from lithos.search.embedding.embedder import Embedder, EmbedderUnavailable, load_embedder
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
    """Error for a check that lacks its input. Another check reports the cause."""


@frozen
class Ownership:
    """The owner of the data directory: whether it is a live process, and the record that it wrote."""

    is_live: bool
    record: OwnerRecord | None


@frozen
class RunningServer:
    """The parts of a running server that checks need."""

    catalogue: Catalogue
    semantic: SemanticBackend
    fulltext_port: FulltextPort
    visibility: Visibility
    projection: Projection


@define(eq=False, kw_only=True)
class Installed:
    """An installation to check. If `live` is set, the checks run inside its server, otherwise outside.

    `config` has the valid settings, `problems` the invalid settings, and `warnings` the ignored settings.
    """

    config: Config
    clock: Callable[[], datetime]
    problems: Sequence[str] = ()
    warnings: Sequence[str] = ()
    #: Function that returns additional warnings about access to the server.
    remarks: Callable[[], Sequence[str]] = tuple
    #: Function that starts a server, for checks that need a running server.
    run_server: RunServer | None = None
    #: Function that loads an embedding model. All checks share the loaded embedder.
    load: Callable[[str], Embedder] = load_embedder
    #: Function that returns the notes. The first call reads them from disk. Blocks.
    take_survey: Callable[[], CheckedVault] | None = None
    live: RunningServer | None = None
    #: Name of the vault, if several vaults are checked.
    vault: str = ""
    #: Vault and path of each note in previously checked vaults, by note id.
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
        """The directory of the databases."""
        return self.data / ".lithos"

    @property
    def is_live(self) -> bool:
        """True if a running server has the files open."""
        return self.live is not None or self.owner.is_live

    @property
    def is_outside(self) -> bool:
        """True if the check runs outside of a server."""
        return self.live is None

    @property
    def survey(self) -> CheckedVault:
        """The notes that were read. Raises `CheckSkipped` if the notes could not be read."""
        if self._survey is None:
            raise CheckSkipped("the notes could not be read")
        return self._survey

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of the notes. Raises `CheckSkipped` if the notes could not be read."""
        return self.survey.catalogue

    @property
    def known_notes(self) -> Iterable[Entry]:
        """Return the known notes, or no notes if they could not be read."""
        return () if self._survey is None else self._survey.catalogue

    @property
    def has_notes(self) -> bool:
        """Return whether the notes were read."""
        return self._survey is not None

    async def read_notes(self) -> CheckedVault:
        """Return the notes, and read them from disk if no check has done so.

        Raises `CheckSkipped` if they cannot be read.
        """
        if self.take_survey is not None:
            self._survey = await look_aside(self.take_survey)
        return self.survey

    @property
    def sizes(self) -> ChunkSizes:
        """The chunk sizes that the indexes use."""
        return ChunkSizes(self.config.of(SearchConfig).chunk_size)

    def loaded(self, name: str) -> Embedder:
        """Return the embedder that an earlier check loaded. Never loads or downloads a model."""
        if self.embedder is None:
            raise EmbedderUnavailable(name, "see the embedder check")
        return self.embedder


async def run_check(check: Check, patient: Installed, bound: float) -> CheckResult:
    """Run a check with a deadline of `bound` seconds. A crash or timeout becomes the result of the check."""
    name = check.name.replace("_", " ") if check.title else check.name
    try:
        with trio.fail_after(bound):
            return CheckResult(name, tuple(await _look(check, patient)))
    except trio.TooSlowError:
        finding = fail(
            f"This check did not finish within {bound:g} seconds.",
            "The disk or the network may hang: read the system log, then run doctor again.",
        )
    except CheckSkipped as reason:
        finding = warn(f"This check was skipped: {reason}.", "See the notes check.")
    except _EXPECTED as failure:
        finding = fail(
            f"This check could not run: {failure}.",
            "Check that the files of the data directory exist and are readable.",
        )
    except Exception as failure:
        log.error("check failed", check=check.name, reason=repr(failure), exc_info=True)
        finding = fail(
            f"This check failed because of a bug: {type(failure).__name__}: {failure}.",
            "Report this error with the log on stderr. The other checks are not affected.",
        )
    return CheckResult(name, (finding,))


async def _look(check: Check, patient: Installed) -> list[CheckFinding]:
    """Run an asynchronous check on the event loop, and any other check in a thread.

    Combine all note issues of a check into one finding.
    """
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
    """Run a blocking check in a worker thread, which is abandoned at the deadline.

    A hanging disk therefore cannot block `lithos doctor`. An abandoned thread does no harm, because checks
    have nothing to clean up.
    """
    return await trio.to_thread.run_sync(call, abandon_on_cancel=True)
