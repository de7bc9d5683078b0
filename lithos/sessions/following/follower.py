"""The actor `SessionFollower`: finds transcripts, reads them at low priority, and deletes old sessions.

Every few seconds it looks at the names, sizes and times of all transcripts, and reads the new bytes of those
that changed. Polling is used because the folders of several clients may be on any file system, and because a
survey of a thousand files takes a few milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import trio
from attrs import define, evolve, field

from lithos.kernel.actors.threads import BackgroundThread, Blocking
from lithos.kernel.databases.database import trouble_of
from lithos.kernel.databases.sqlite import CorruptDatabase, DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.sessions.files.added_folders import FoldersUnreadable, all_folders
from lithos.sessions.files.opencode import survey_added
from lithos.sessions.files.surveying import FolderSurvey, FoundTranscript
from lithos.sessions.following.transcript import FORGOTTEN, UNFINISHED, TranscriptSteps
from lithos.sessions.model.masking import SecretMask
from lithos.sessions.model.results import FolderStatus, SessionsStatus, TranscriptProblem
from lithos.sessions.rows.schema import Progress
from lithos.sessions.rows.store import Embedding, SessionStore

T = TypeVar("T")

log = get_logger("lithos.sessions")

#: Seconds between two surveys, and the least pause as a multiple of a survey's duration.
INTERVAL: Final = 10.0
PAUSE: Final = 20.0
#: Seconds to wait after a step that failed.
RETRY: Final = 30.0
#: Pause after a step as a multiple of its duration: normally, and while notes are written. The longest pause,
#: and seconds between two checks whether notes are still written.
REST, RESTS_IN_WRITES = 0.25, 12.0
LONGEST_REST: Final = 5.0
LOOK: Final = 0.25
#: Maximum number of sessions. The oldest are deleted beyond it.
MOST_SESSIONS: Final = 20_000
#: Number of sessions that are deleted, and of blocks that are embedded again, in one step.
DELETED_AT_ONCE: Final = 20
EMBEDDED_AT_ONCE: Final = 20
#: Maximum number of transcripts with problems that the state lists.
MOST_PROBLEMS: Final = 100
NO_MASK: Final = (
    "Nothing is indexed, because this installation cannot mask secrets. Install Lithos again: "
    "pip install --force-reinstall lithos-server"
)

_Failures = (OSError, DatabaseFailed, CorruptDatabase, FoldersUnreadable)


@define(eq=False, slots=False)
class SessionFollower:
    """Keeps the index of sessions up to date. Call `run` in the background, the rest on the event loop."""

    _store: SessionStore
    _private: Path
    #: Folders of the settings: names of clients, or paths.
    _configured: Sequence[str]
    _keep_days: int
    #: Without a mask, nothing is read.
    _mask: SecretMask | None
    _embedding: Callable[[], Embedding]
    _clock: Callable[[], datetime]
    #: The clock of retention, which ignores a wrong clock of the system.
    _settled: Callable[[], datetime]
    #: Awaited before the first transcript is read, so that notes are indexed first.
    _notes_first: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
    #: Returns the number of note changes so far.
    _changes: Callable[[], int] = lambda: 0
    _environment: Mapping[str, str] = field(factory=lambda: os.environ)
    _working: Blocking = field(factory=lambda: BackgroundThread("lithos-sessions"))
    _progress: dict[str, Progress] = field(factory=dict, init=False)
    _surveys: list[FolderSurvey] = field(factory=list, init=False)
    _due: list[FoundTranscript] = field(factory=list, init=False)
    _status: SessionsStatus = field(factory=lambda: SessionsStatus(is_enabled=False), init=False)
    _trouble: str | None = field(default=None, init=False)
    _steps: TranscriptSteps | None = field(default=None, init=False)
    _wake: trio.Event = field(factory=trio.Event, init=False)
    #: Replaced after each round of `run`. The old event is set then.
    _round: trio.Event = field(factory=trio.Event, init=False)
    #: Whether rows have changed since they were counted, and the model with which all turns are embedded.
    _is_changed: bool = field(default=True, init=False)
    _embedded_with: str | None = field(default=None, init=False)
    #: Numbers of rounds that have begun, and that have ended.
    _begun: int = field(default=0, init=False)
    _ended: int = field(default=0, init=False)

    # -- what callers use ----------------------------------------------------------------------

    def status(self) -> SessionsStatus:
        """Return the state of the index."""
        trouble = self._trouble or trouble_of(self._store)
        return evolve(self._status, waiting=len(self._due), trouble=trouble)

    def notices(self, path: str) -> tuple[str, ...]:
        """Return in sentences what could not be read of a transcript."""
        progress = self._progress.get(path)
        return () if progress is None else progress.notices()

    async def forget(self, session: str) -> bool:
        """Delete a session from the index, and never index its transcript again.

        Return whether it existed. Raises `DatabaseFailed` and `OSError`.
        """
        was_there = await self._working.run(partial(self._store.forget, session))
        for path, progress in self._progress.items():
            if progress.memory.get("id") == session:
                kept = evolve(progress, session=None, memory={**progress.memory, FORGOTTEN: True})
                self._progress[path] = kept
                await self._working.run(partial(self._store.store_progress, kept))
                break
        self._is_changed = True
        await self._count()
        return was_there

    async def caught_up(self) -> None:
        """Survey now, and wait until every transcript is read as far as it can be read, or a step failed."""
        wanted = self._begun + 1
        self._wake.set()
        while self._ended < wanted:
            await self._round.wait()

    # -- the task ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Background task: follow the transcripts until cancelled."""
        await self._notes_first()
        self._progress = await self._working.run(self._store.all_progress)
        while True:
            self._begun += 1
            self._wake = trio.Event()
            pause = await self._look()
            self._ended += 1
            ended, self._round = self._round, trio.Event()
            ended.set()
            with trio.move_on_after(pause):
                await self._wake.wait()

    async def _look(self) -> float:
        """Survey all folders, read what changed, and delete what is old. Return the seconds to wait."""
        began = trio.current_time()
        if not await self._attempt("looking for transcripts", self._survey):
            return RETRY
        pause = max(INTERVAL, PAUSE * (trio.current_time() - began))
        if not self._surveys and not self._store.is_there:
            self._status = SessionsStatus(is_enabled=False)
            return pause
        done = await self._attempt("indexing sessions", self._work)
        return pause if done else RETRY

    async def _work(self) -> None:
        await self._delete()
        if self._mask is None:
            self._due.clear()
        while self._due:
            await self._read_next()
        await self._embed()
        await self._count()

    async def _attempt(self, what: str, step: Callable[[], Awaitable[None]]) -> bool:
        """Run a step and return whether it succeeded. The state shows its error until a later success."""
        try:
            await step()
        except _Failures as failure:
            trouble = f"{what}: {failure}"
            if self._trouble != trouble:
                log.error("session step failed", reason=trouble)
            self._trouble = trouble
            return False
        self._trouble = NO_MASK if self._mask is None and self._surveys else None
        return True

    # -- surveys -------------------------------------------------------------------------------

    async def _survey(self) -> None:
        surveys, vanished = await self._working.run(self._survey_now)
        self._surveys = surveys
        found = [each for survey in surveys for each in survey.found]
        if vanished:
            await self._working.run(partial(self._store.mark_gone, vanished, self._clock()))
            for path in vanished:
                del self._progress[path]
            self._is_changed = True
        removed = {each.folder for each in self._progress.values()} - {each.folder.name for each in surveys}
        for folder in removed:
            await self._remove_folder(folder)
        self._due = [each for each in found if self._is_news(each)]
        self._due.sort(key=lambda each: each.mtime_ns)

    def _survey_now(self) -> tuple[list[FolderSurvey], list[str]]:
        """Return the surveys of all folders, and the paths of transcripts that no longer exist. Blocks."""
        folders = all_folders(self._private, self._configured, self._environment)
        surveys = [survey_added(folder) for folder in folders]
        names = {each.name for each in folders}
        found = {each.path for survey in surveys for each in survey.found}
        missing = [
            each for each in self._progress.values() if each.path not in found and each.folder in names
        ]
        broken = {each.folder.name for each in surveys if each.problem}
        return surveys, [each.path for each in missing if _is_gone(each, broken)]

    def _is_news(self, found: FoundTranscript) -> bool:
        known = self._progress.get(found.path)
        return known is None or (known.size, known.mtime_ns, known.folder) != (
            found.size,
            found.mtime_ns,
            found.folder,
        )

    async def _remove_folder(self, folder: str) -> None:
        while await self._rested(partial(self._store.delete_folder, folder, DELETED_AT_ONCE)):
            pass
        for path in [path for path, each in self._progress.items() if each.folder == folder]:
            del self._progress[path]
        self._is_changed = True

    # -- reading -------------------------------------------------------------------------------

    async def _read_next(self) -> None:
        """Read the next part of the newest transcript that changed."""
        assert self._mask is not None
        found = self._due[-1]
        if self._steps is None:
            self._steps = TranscriptSteps(self._store, self._mask, self._embedding, self._clock)
        known = self._progress.get(found.path)
        progress = await self._rested(partial(_step, self._steps, found, known))
        self._is_changed = True
        if progress is not None:
            self._progress[found.path] = progress
        if progress is None or progress.size != UNFINISHED:
            self._due.remove(found)

    async def _embed(self) -> None:
        """Embed the turns that have vectors of another model, or no vectors."""
        embedding = self._embedding()
        if embedding.model == self._embedded_with:
            return
        while await self._rested(partial(self._store.embed_some, embedding, EMBEDDED_AT_ONCE)):
            pass
        self._embedded_with, self._is_changed = embedding.model, True

    async def _rested(self, call: Callable[[], T]) -> T:
        """Run a call in the thread, and then pause, so that other work gets the interpreter."""
        changes, began = self._changes(), trio.current_time()
        result = await self._working.run(call)
        took = trio.current_time() - began
        await trio.sleep(min(LONGEST_REST, REST * took))
        if self._changes() != changes:
            with trio.move_on_after(min(LONGEST_REST, RESTS_IN_WRITES * took)):
                while (now := self._changes()) != changes:
                    changes = now
                    await trio.sleep(LOOK)
        return result

    async def _delete(self) -> None:
        """Delete the sessions whose transcripts are gone for long enough, and the oldest beyond the limit."""
        before = self._settled() - timedelta(days=self._keep_days)
        while await self._rested(partial(self._store.delete_gone, before, DELETED_AT_ONCE)):
            self._is_changed = True
        if self._is_changed:
            while await self._rested(partial(self._store.delete_oldest, MOST_SESSIONS, DELETED_AT_ONCE)):
                pass

    # -- the state -----------------------------------------------------------------------------

    async def _count(self) -> None:
        """Count the rows if they have changed. The surveys are newer in any case."""
        if self._is_changed:
            self._is_changed = False
            self._status = await self._working.run(self._count_now)
        counted = {each.name: each.sessions for each in self._status.folders}
        self._status = evolve(
            self._status,
            is_enabled=bool(self._surveys),
            folders=[_folder_status(each, counted.get(each.folder.name, 0)) for each in self._surveys],
            surveyed_at=self._clock(),
        )

    def _count_now(self) -> SessionsStatus:
        sessions, turns, of_folders = self._store.totals()
        problems = [
            TranscriptProblem(path=path, reasons=reasons)
            for path, progress in sorted(self._progress.items())
            if (reasons := progress.notices())
        ]
        skipped: dict[str, int] = {}
        for progress in self._progress.values():
            for reason, count in progress.skipped.items():
                skipped[reason] = skipped.get(reason, 0) + count
        for survey in self._surveys:
            for reason, count in survey.left_out.items():
                skipped[reason] = skipped.get(reason, 0) + count
        return SessionsStatus(
            is_enabled=bool(self._surveys),
            folders=[_folder_status(each, of_folders.get(each.folder.name, 0)) for each in self._surveys],
            sessions=sessions,
            turns=turns,
            embedded=self._store.embedded(self._embedding().model),
            problems=problems[:MOST_PROBLEMS],
            problem_count=len(problems),
            skipped=skipped,
        )


def _folder_status(survey: FolderSurvey, sessions: int) -> FolderStatus:
    """Return the state of an added folder."""
    folder = survey.folder
    return FolderStatus(
        name=folder.name,
        client=folder.client,
        path=", ".join(map(str, folder.places)),
        files=len(survey.found),
        bytes=survey.bytes,
        sessions=sessions,
        problem=survey.problem,
    )


def _is_gone(progress: Progress, broken: set[str]) -> bool:
    """Return whether a transcript no longer exists. A transcript that only cannot be seen still exists."""
    path, _, session = progress.path.partition("#")
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return bool(session) and progress.folder not in broken


def _step(steps: TranscriptSteps, found: FoundTranscript, known: Progress | None) -> Progress | None:
    """Read a part of a transcript. Return None if the transcript was just deleted."""
    try:
        return steps.step(found, known)
    except FileNotFoundError:
        return None
    except OSError as failure:
        if failure.filename is None:
            raise
        reason = f"The transcript cannot be read: {failure.strerror}. Check its permissions."
        return evolve(known or Progress(path=found.path, folder=found.folder), size=0, problem=reason)
