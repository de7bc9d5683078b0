"""The models of the accurate tier in one vault: which one answers, and the switch to the other one.

The languages of the vault decide (`accurate_choice`). They are looked at when the tier starts, and again when
many notes have changed. Each model has vectors of its own in a directory of its own. A switch fills the
directory of the new model in the background. Meanwhile the former model answers, and it still follows every
change. Once the new vectors cover 99 % of the chunks, queries use them from one moment to the next. The
directory of the former model is deleted when the new vectors are complete and saved. If the process ends
before, the next start finds both directories and continues.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal

import trio
from attrs import define, evolve, field

from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.search.embedding.transformer import is_installed
from lithos.search.embedding.transformer_models import ENGLISH, MODELS, MULTILINGUAL, TransformerModel
from lithos.search.index.vectors import stored_identity
from lithos.search.indexing.accurate import RETRY, AccurateTier
from lithos.search.indexing.accurate_choice import ModelChoice, Wanted, choose_model
from lithos.search.indexing.coverage import NoteText, Progress
from lithos.search.indexing.ports import VectorPort
from lithos.search.indexing.tiers import TIER, TieredNotes
from lithos.search.ranking.calibrations import STATIC

log = get_logger("lithos.accurate")

#: Number of changed notes, and their share of the chunks, after which the languages are checked again.
CHANGES: Final = 20
CHANGED_SHARE: Final = 0.02
#: Minimum seconds between two checks of the languages. A check reads only changed notes, at most 400.
PAUSE: Final = 60.0


@define(eq=False)
class _Running:
    """A model with its tier, which runs until the scope is cancelled. `ended` is set afterwards."""

    model: TransformerModel
    tier: AccurateTier
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    ended: trio.Event = field(factory=trio.Event)

    async def run(self) -> None:
        """Run the tier until the scope is cancelled."""
        try:
            with self.scope:
                await self.tier.run()
        finally:  # `end` waits for this also while the server stops.
            self.ended.set()

    async def end(self) -> None:
        """Stop the tier and wait for its last call in a thread."""
        self.scope.cancel()
        with trio.CancelScope(shield=True):
            await self.ended.wait()


@define(eq=False, slots=False)
class AccurateModels:
    """The accurate tier of a vault. Chooses its model, and lets the former one answer during a switch."""

    _port: VectorPort
    #: Create the tier of a model.
    _make: Callable[[TransformerModel], AccurateTier]
    #: Directory that has the directory of each model.
    _directory: Path
    _wanted: Literal["auto", "accurate"]
    _wanted_model: Wanted
    #: Return the share (0..1) of the notes that are not English.
    _share_of_other_languages: Callable[[], Awaitable[float]]
    _files: Threads = field(factory=Threads, init=False)
    _current: _Running | None = field(default=None, init=False)
    #: The former model during a switch.
    _former: _Running | None = field(default=None, init=False)
    #: The model in use or on its way, with the reason for it. None before the first note.
    choice: ModelChoice | None = field(default=None, init=False)
    _token: trio.lowlevel.TrioToken | None = field(default=None, init=False)
    _woken: trio.Event = field(factory=trio.Event, init=False)
    _changes: int = field(default=0, init=False)
    _looked_at: float = field(default=-math.inf, init=False)
    #: Whether nothing remains of the other model.
    _is_tidy: bool = field(default=False, init=False)
    #: Set once waiting no longer helps, because every note is embedded or the tier cannot be used.
    settled: trio.Event = field(factory=trio.Event, init=False)

    @property
    def answering(self) -> TieredNotes | None:
        """Return the accurate vectors if they are used for queries, of the former model during a switch.

        If the static vectors are used, the result is None.
        """
        for each in (self._current, self._former):
            if each is not None and each.tier.answering is not None:
                return each.tier.answering
        return None

    @property
    def reason(self) -> str | None:
        """Return why the chosen model cannot be used. Return None while no problem is known."""
        return None if self._current is None else self._current.tier.reason

    @property
    def answering_model(self) -> str | None:
        """Return the title of the model that answers queries, or None if the static tier answers."""
        answering = self.answering
        names = {each.name: each.title for each in MODELS}
        return None if answering is None else names.get(answering.calibration, answering.calibration)

    def progress(self) -> Progress:
        """Return the tier that answers queries, and the progress of the chosen model."""
        tier = STATIC if self.answering is None else TIER
        if self._current is not None:
            return evolve(self._current.tier.progress(), tier=tier)
        target = self._port.target
        return Progress(tier, 0, target.vectors.chunk_total if target is not None else 0)

    async def run(self, static: trio.Event) -> None:
        """Background task: wait for the event `static` and the first note, then keep the right model running.

        The task ends early if the tier cannot be used, otherwise it never ends. Nothing is loaded before the
        first note exists.
        """
        await static.wait()
        target = self._port.target
        # Without a static model, the tier lacks a fallback, and the number of remaining notes is unknown.
        if target is None or (self._wanted == "auto" and not is_installed()):
            self.settled.set()
            return
        self._token = trio.lowlevel.current_trio_token()
        self._port.on_applied += (self._take_change,)
        if self._wanted == "auto":  # A required tier must report its problem at once.
            while not target.vectors.chunk_total:
                self.settled.set()
                await self._wait(math.inf)
        async with trio.open_nursery() as nursery:
            while True:
                await self._choose(nursery)
                await self._finish_switch()
                # A former model remains only if the vectors of the new one are incomplete or not saved.
                again = math.inf if self._former is None else trio.current_time() + RETRY
                await self._wait(min(self._next_look(), again))

    async def _choose(self, nursery: trio.Nursery) -> None:
        """Start the model that fits the languages. The model that was running becomes the former one."""
        if self._current is not None and trio.current_time() < self._next_look():
            return
        self._changes, self._looked_at = 0, trio.current_time()
        share = await self._share_of_other_languages() if self._wanted_model == "auto" else 0.0
        was = self.choice.model if self.choice is not None else await self._files.run(self._find_stored)
        self.choice = choose_model(self._wanted_model, share, was_multilingual=was is MULTILINGUAL)
        model = self.choice.model
        if self._current is not None and self._current.model is model:
            return
        log.info("accurate model", model=model.title, because=self.choice.because)
        self._is_tidy = False
        if self._current is None:
            self._current = self._start(model, nursery)
            await self._current.tier.planned.wait()
            other = ENGLISH if model is MULTILINGUAL else MULTILINGUAL
            if self.answering is None and await self._files.run(partial(self._has_vectors, other)):
                self._former = self._start(other, nursery)
                await self._former.tier.planned.wait()
        elif self._former is not None and self._former.model is model:  # Back to a model that still answers.
            self._current, self._former = self._former, self._current
        else:
            self._former, self._current = self._current, self._start(model, nursery)

    def _start(self, model: TransformerModel, nursery: trio.Nursery) -> _Running:
        started = _Running(model, self._make(model))
        nursery.start_soon(started.run)
        nursery.start_soon(self._tell_settled, started.tier)
        return started

    async def _tell_settled(self, tier: AccurateTier) -> None:
        await tier.settled.wait()
        if self._current is not None and self._current.tier is tier:
            self.settled.set()
        self._wake()

    async def _finish_switch(self) -> None:
        """Stop the former model and delete its vectors once those of the chosen model are complete."""
        current, former = self._current, self._former
        assert current is not None
        if self._is_tidy or not current.tier.settled.is_set() or current.tier.answering is None:
            return
        if former is not None:
            await current.tier.save()
            if not current.tier.is_saved:
                return  # The former vectors are kept until a later change or start saves the new ones.
            self._former = None
            await former.end()
            former.tier.forget()
            log.info("accurate model switched", model=current.model.title, former=former.model.title)
        other = ENGLISH if current.model is MULTILINGUAL else MULTILINGUAL
        await self._files.run(lambda: shutil.rmtree(self.directory_of(other), ignore_errors=True))
        self._is_tidy = True

    def directory_of(self, model: TransformerModel) -> Path:
        """Return the directory of the vectors of a model."""
        return self._directory / model.name

    def _has_vectors(self, model: TransformerModel) -> bool:
        return stored_identity(self.directory_of(model)) == model.identity and model.is_installed

    def _find_stored(self) -> TransformerModel:
        """Return the model that the vault used last. It decides only between the two limits."""
        return find_stored_model(self._directory)

    def _take_change(self, notes: Sequence[NoteText], removals: Sequence[int]) -> None:
        """Count changed notes. The thread of the static index calls this method."""
        self._changes += len(notes) + len(removals)
        assert self._token is not None
        try:
            self._token.run_sync_soon(self._wake)
        except trio.RunFinishedError:
            log.debug("change ignored after the end of the event loop")

    def _wake(self) -> None:
        self._woken.set()

    async def _wait(self, until: float) -> None:
        """Wait for a change, but not longer than until the time `until`."""
        with trio.move_on_at(until):
            await self._woken.wait()
        self._woken = trio.Event()

    def _next_look(self) -> float:
        """Return the time at which the languages must be looked at again, if nothing else changes."""
        target = self._port.target
        chunks = target.vectors.chunk_total if target is not None else 0
        is_due = self._changes >= max(CHANGES, CHANGED_SHARE * chunks)
        return self._looked_at + PAUSE if is_due and self._wanted_model == "auto" else math.inf

    async def close(self) -> None:
        """Save and release the memory. The background task must have ended before."""
        self._port.on_applied = tuple(each for each in self._port.on_applied if each != self._take_change)
        for running in (self._former, self._current):
            if running is not None:
                await running.tier.close()
        self._current = self._former = None


def find_stored_model(directory: Path) -> TransformerModel:
    """Return the model that a vault used last, by its directories of vectors in `directory`."""
    return MULTILINGUAL if (directory / MULTILINGUAL.name).exists() else ENGLISH
