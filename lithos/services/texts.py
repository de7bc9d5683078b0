"""Note texts, read from the files, which are the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import trio
from attrs import frozen

from lithos.actors.catalogue import Entry
from lithos.core.frontmatter import UnreadableNote, parse_document
from lithos.core.model import Document
from lithos.core.times import from_nanoseconds
from lithos.stores.files import NoteFiles, OutsideKnowledge, ReadFile

T = TypeVar("T")

#: Two cores' worth of readers: more would only queue for the interpreter.
READERS = 2


@frozen
class LoadedNote:
    """A note as its file says now."""

    source: ReadFile
    document: Document


class NoteTexts:
    """Reads many notes in one hop to a worker thread."""

    def __init__(self, files: NoteFiles) -> None:
        self._files = files
        self._limiter = trio.CapacityLimiter(READERS)

    async def load(self, entry: Entry) -> LoadedNote | None:
        """One note, or None when its file is gone or cannot be read."""
        (loaded,) = await self.map([entry], lambda _, note: note)
        return loaded

    async def map(self, entries: Sequence[Entry], work: Callable[[int, LoadedNote], T]) -> list[T | None]:
        """Do some work on each note in the thread; None where a note cannot be read."""
        if not entries:
            return []

        def run() -> list[T | None]:
            notes = [self._read(entry) for entry in entries]
            return [None if note is None else work(i, note) for i, note in enumerate(notes)]

        return await trio.to_thread.run_sync(run, limiter=self._limiter)

    def _read(self, entry: Entry) -> LoadedNote | None:
        try:
            source = self._files.read(entry.path)
            modified = from_nanoseconds(source.state.mtime_ns)
            return LoadedNote(source, parse_document(source.data, entry.path, modified))
        except (OSError, OutsideKnowledge, UnreadableNote):
            return None
