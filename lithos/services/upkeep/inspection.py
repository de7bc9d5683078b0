"""The checks of `lithos doctor` that can be made inside of a running server, on demand.

They change nothing but for dot-named probe files, which they remove. What only matters before a start (the
owner, the port, loading the model) is left out; the notes and indexes are those the server holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import trio
from attrs import define, field, frozen

from lithos.catalogue.catalogue import Catalogue
from lithos.core.findings import GRAPH, INDICES, PROVENANCE, CheckResult, Finding, ScopeResult, ok, warn
from lithos.services.upkeep import checks_notes, checks_storage
from lithos.services.upkeep.checks_notes import Look, look_aside, run_check
from lithos.services.upkeep.reconcile import LiveCheck

#: Seconds for one check.
BOUND: Final = 15.0
#: Seconds for which results are told again instead of checking anew.
AGE: Final = 5.0
_MEND: Final = "The notes are not affected. Run `lithos reconcile`."
#: Edges follow changed notes by enrichment, within minutes.
_ENRICHES: Final = "Enrichment brings them in line by itself. If they stay, run `lithos reconcile`."
_MERGE: Final = "Merge them on the page Copies, or with `lithos conflicts`."
_NEW_IDS: Final = "Run `lithos validate --fix ids` to give them new ids, or move the copies away."
_LIST: Final = "Correct them; `lithos validate` lists them all."


@frozen
class Place:
    """Where a server keeps its files; `vault` is None where the notes are its own."""

    data: Path
    notes: Path
    vault: Path | None

    @property
    def private(self) -> Path:
        """Where the databases are."""
        return self.data / ".lithos"


@frozen
class Inspected:
    """The results of one run, in the order in which one explains the next."""

    at: datetime
    seconds: float
    checks: tuple[CheckResult, ...]


@define(eq=False)
class Inspection:
    """Runs the checks, one run at a time; whoever asks meanwhile gets its results."""

    _place: Place
    #: What is to be said of the settings and the tokens now.
    _configuration: Callable[[], Sequence[Finding]]
    _catalogue: Catalogue
    _live: LiveCheck
    _clock: Callable[[], datetime]
    _bound: float = BOUND
    _running: trio.Lock = field(factory=trio.Lock, init=False)
    _ended: float = field(default=-AGE, init=False)
    #: The last run, if there was one.
    last: Inspected | None = field(default=None, init=False)

    async def run(self) -> Inspected:
        """Check everything now, unless that was done a moment ago."""
        async with self._running:
            if self.last is None or trio.current_time() >= self._ended + AGE:
                began, now = trio.current_time(), self._clock()
                checks = tuple([await run_check(name, look, self._bound) for name, look in self._checks()])
                self._ended = trio.current_time()
                self.last = Inspected(now, self._ended - began, checks)
            return self.last

    def _checks(self) -> Iterator[tuple[str, Look]]:
        place, private = self._place, self._place.private
        yield "configuration", _known(self._configuration())
        yield from check_folders(place)
        yield "databases", aside(lambda: checks_storage.check_databases(private, is_live=True))
        yield "notes", self._look_at_notes
        yield check_files(place)
        yield "displaced texts", aside(lambda: checks_notes.check_displaced(private))
        yield "indexes", self._scope(INDICES, "The indexes hold exactly the notes.")
        yield "link graph", self._scope(GRAPH, "The link graph is that of the notes.")
        yield "lineage", self._scope(PROVENANCE, "The edges of lineage are those of the notes.", _ENRICHES)
        yield "clock", self._look_at_clock

    async def _look_at_notes(self) -> Iterable[Finding]:
        catalogue = self._catalogue
        skipped, broken = dict(catalogue.skipped), sorted(catalogue.broken)
        place, found = self._place, list[Finding]()
        if not await look_aside(place.notes.is_dir):
            found.append(checks_notes.missing_notes(place.data, place.notes, place.vault))
        unreadable = {path: each.reason for path, each in skipped.items() if each.note_id is None}
        if unreadable:
            path = min(unreadable)
            found.append(warn(f"{len(unreadable)} files are not served: {path}: {unreadable[path]}.", _LIST))
        copies = sorted(path for path, each in skipped.items() if each.copy is not None)
        if copies:
            found.append(
                warn(f"Files that another machine wrote of a note: {len(copies)}. {copies[0]}", _MERGE)
            )
        seconds = {
            path: each.reason
            for path, each in skipped.items()
            if each.note_id is not None and each.copy is None
        }
        if seconds:
            path = min(seconds)
            found.append(
                warn(f"Files that have the id of another: {len(seconds)}. {path} ({seconds[path]})", _NEW_IDS)
            )
        if broken:
            entry = catalogue.get(broken[0])
            found.append(
                warn(
                    f"{len(broken)} notes have a frontmatter that cannot be read and are served without it: "
                    f"{entry.path if entry is not None else broken[0]}.",
                    _LIST,
                )
            )
        return [*found, ok(f"{len(catalogue):,} notes are served.")]

    def _scope(self, scope: str, well: str, way_out: str = _MEND) -> Look:
        async def look() -> Iterable[Finding]:
            (result,) = await self._live.run([scope])
            return [*_findings(result, way_out), ok(well)]

        return look

    async def _look_at_clock(self) -> Iterable[Finding]:
        times = [(entry.path, entry.state.mtime_ns) for entry in self._catalogue]
        private, now = self._place.private, self._clock()
        return await look_aside(lambda: list(checks_storage.check_clock(private, times, now, is_live=True)))


def _findings(result: ScopeResult, way_out: str) -> Iterator[Finding]:
    for failure in result.failures:
        yield warn(f"This could not be compared ({failure.code}): {failure.detail}", _MEND)
    repairs = [action for action in result.actions if action.is_repair]
    if repairs:
        number = sum(action.count for action in repairs)
        reasons = ", ".join(sorted({action.reason for action in repairs}))
        yield warn(f"{number:,} differences from the notes ({reasons}).", way_out)


def _known(findings: Sequence[Finding]) -> Look:
    async def look() -> Iterable[Finding]:
        await trio.lowlevel.checkpoint()
        return findings

    return look


def check_folders(place: Place) -> Iterator[tuple[str, Look]]:
    """What everything else rests on."""
    notes, vault = place.notes, place.vault
    yield "data directory", aside(lambda: checks_storage.check_data_directory(place.data, notes, vault))
    yield "disk space", aside(lambda: checks_storage.check_space(place.data))
    yield "layout", aside(lambda: checks_storage.check_layout(place.data))


def check_files(place: Place) -> tuple[str, Look]:
    """How the files of the notes are replaced; in a vault without trying it, which makes files."""
    vault = place.vault
    if vault is None:
        return "protection", aside(lambda: checks_notes.check_protection(place.notes))
    return "vault files", aside(lambda: checks_notes.check_vault_files(vault, place.private))


def aside(look: Callable[[], Iterable[Finding]]) -> Look:
    """A check in a thread of its own."""
    return lambda: look_aside(lambda: list(look()))
