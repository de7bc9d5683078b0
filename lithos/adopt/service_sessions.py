"""Merging of memory files that several sessions of a client wrote over each other."""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import islice
from typing import Final

import trio
from attrs import define, field

from lithos.adopt.model_sessions import merge_sessions
from lithos.events.journal.broadcaster import Broadcaster
from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import LithosError
from lithos.kernel.values.events import NOTE_UPDATED, Event
from lithos.kernel.values.principals import SESSIONS_AGENT, WATCHER_AGENT
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import digest_of
from lithos.notes.format.document import parse_document
from lithos.notes.model.versions import HistoryFailed
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.writing.messages import WriteNote
from lithos.notes.writing.ports import VersionStore
from lithos.text.yaml.nodes import UnreadableNote

log = get_logger("lithos.adopt")

#: Maximum number of seconds between two writes that count as made at the same time. A session that rewords
#: its own line takes longer, because it asks its model in between.
AT_ONCE: Final = 2.0
#: Maximum number of versions to compare, of remembered files, and of attempts for one file.
_MOST_VERSIONS: Final = 12
_MOST_FILES: Final = 1_000
_ATTEMPTS: Final = 5


@define(eq=False)
class SessionMerging:
    """Merges the texts of sessions that write one file of a linked folder at the same time."""

    _files: NoteFiles
    _catalogue: Catalogue
    _knowledge: Knowledge
    _versions: VersionStore | None
    _broadcaster: Broadcaster
    _opening: Opening
    _clock: Clock
    _blocking: Threads = field(factory=Threads, init=False)
    #: Times of the last changes of each file, oldest first.
    _times: dict[str, deque[float]] = field(factory=dict, init=False)

    async def run(self) -> None:
        """Look at each change of a file in a linked folder. Without a history, nothing is merged."""
        if self._versions is None:
            return
        await self._opening.complete.wait()
        while True:
            events = self._broadcaster.listen(self._is_wanted)
            async for event in events.events:
                await self._take(event)
            self._broadcaster.leave(events)
            if not events.overflowed:
                await trio.sleep_forever()  # The server stops.

    def _is_wanted(self, event: Event) -> bool:
        draft = event.draft
        return draft.type == NOTE_UPDATED and self._files.is_linked(str(draft.payload.get("path")))

    async def _take(self, event: Event) -> None:
        path, now = str(event.draft.payload["path"]), event.draft.timestamp.timestamp()
        times = self._times.pop(path, None) or deque(maxlen=_MOST_VERSIONS)
        while times and times[0] < now - AT_ONCE:
            times.popleft()
        times.append(now)
        self._times[path] = times
        if len(self._times) > _MOST_FILES:
            del self._times[next(iter(self._times))]
        # Without an earlier write in this time, there is nothing that could be overwritten.
        if len(times) > 1 and event.draft.agent == WATCHER_AGENT:
            await self._merge(path, len(times) + 1)

    async def _merge(self, path: str, versions: int) -> None:
        for _ in range(_ATTEMPTS):
            entry = self._catalogue.at_path(path)
            if entry is None:
                return
            version = entry.note.version
            try:
                merged = await self._blocking.run(partial(self._merged, entry, versions))
                if merged is None:
                    return
                request = WriteNote(
                    agent=SESSIONS_AGENT, id=entry.note.id, content=merged, expected_version=version
                )
                await self._knowledge.write(request)
            except (LithosError, OSError, trio.TooSlowError) as failure:
                log.info("sessions not merged yet", path=path, reason=str(failure))
                continue
            except (ActorDown, ShuttingDown):
                return
            log.info("sessions merged", path=path)
            return

    def _merged(self, entry: Entry, versions: int) -> str | None:
        """Return the merged content of a note, or None if nothing is missing. Blocks."""
        assert self._versions is not None
        try:
            kept = list(islice(self._versions.contents(entry.note.id, versions), versions))
            if not kept or digest_of(kept[0]) != entry.digest:
                return None  # There is a newer version, which has its own event.
            return merge_sessions([self._content(entry, data) for data in kept])
        except HistoryFailed as failure:
            log.warning("sessions not merged", path=entry.path, reason=failure.message)
        except UnreadableNote as problem:
            log.info("sessions not merged", path=entry.path, reason=problem.reason)
        return None

    def _content(self, entry: Entry, data: bytes) -> str:
        style = self._catalogue.style
        return parse_document(data, entry.path, self._clock(), entry.note.id, style).content
