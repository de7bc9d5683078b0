"""Note texts, read from the files, which are the truth."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import trio
from attrs import frozen

from lithos.actors.catalogue import Entry, digest_of
from lithos.core.frontmatter import UnreadableNote, parse_document
from lithos.core.model import Document
from lithos.core.note_layout import read_layout
from lithos.core.times import from_nanoseconds
from lithos.stores.files import NoteFiles, OutsideKnowledge, ReadFile

T = TypeVar("T")

#: Two cores' worth of readers: more would only queue for the interpreter.
READERS: Final = 2
#: Bytes of contents kept: those of some 10,000 ordinary notes.
KEPT_BYTES: Final = 24 * 1024 * 1024
#: A larger content is read anew each time, so that a few of them cannot drive out all others.
LARGEST_KEPT: Final = 64 * 1024
#: Characters to work on without leaving the event loop: about a millisecond of cutting snippets.
CHARACTERS_INLINE: Final = 64 * 1024


@frozen
class LoadedNote:
    """A note as its file says now."""

    source: ReadFile
    document: Document


@frozen
class _Content:
    """The content of a file as it is now, and the hash of the file."""

    text: str
    digest: str


class NoteTexts:
    """Reads notes in worker threads; remembers contents for as long as the catalogue says they hold.

    Each system call of a thread gives the interpreter away, and getting it back from a busy event loop
    takes up to a switch interval: ten files cost a search a tenth of a second under load. Answers
    about what is indexed therefore come from memory where they can.
    """

    def __init__(self, files: NoteFiles) -> None:
        self._files = files
        self._limiter = trio.CapacityLimiter(READERS)
        self._kept = _KeptContents(KEPT_BYTES)

    async def load(self, entry: Entry) -> LoadedNote | None:
        """One note, or None when its file is gone or cannot be read."""
        return await trio.to_thread.run_sync(self._load, entry, limiter=self._limiter)

    async def load_bytes(self, entry: Entry) -> bytes | None:
        """The file of a note as it is stored, or None when it is gone or out of reach."""
        return await trio.to_thread.run_sync(self._load_bytes, entry.path, limiter=self._limiter)

    async def map_contents(self, entries: Sequence[Entry], work: Callable[[int, str], T]) -> list[T | None]:
        """Do some work on the content of each note; None where a note cannot be read.

        `work` is given the position and the content of the indexed state, or of the file when that has
        changed since. It may run in a worker thread.
        """
        contents = await self._contents(entries)

        def run() -> list[T | None]:
            return [None if content is None else work(i, content) for i, content in enumerate(contents)]

        if sum(map(len, filter(None, contents))) <= CHARACTERS_INLINE:
            return run()
        return await trio.to_thread.run_sync(run, limiter=self._limiter)

    async def _contents(self, entries: Sequence[Entry]) -> list[str | None]:
        found = {entry.serial: self._kept.get(entry) for entry in entries}
        missing = [entry for entry in entries if found[entry.serial] is None]
        if missing:
            read = await trio.to_thread.run_sync(self._read_contents, missing, limiter=self._limiter)
            for entry, content in zip(missing, read, strict=True):
                if content is None:
                    continue
                found[entry.serial] = content.text
                if content.digest == entry.digest:
                    self._kept.put(entry, content.text)
        return [found[entry.serial] for entry in entries]

    def _load(self, entry: Entry) -> LoadedNote | None:
        try:
            source = self._files.read(entry.path)
            modified = from_nanoseconds(source.state.mtime_ns)
            return LoadedNote(source, parse_document(source.data, entry.path, modified))
        except (OSError, OutsideKnowledge, UnreadableNote):
            return None

    def _load_bytes(self, path: str) -> bytes | None:
        try:
            return self._files.read(path).data
        except (OSError, OutsideKnowledge):
            return None

    def _read_contents(self, entries: Sequence[Entry]) -> list[_Content | None]:
        return [self._read_content(entry) for entry in entries]

    def _read_content(self, entry: Entry) -> _Content | None:
        """The content alone: reading the frontmatter as well costs ten times as much."""
        try:
            data = self._files.read(entry.path).data
            return _Content(read_layout(data).content, digest_of(data))
        except (OSError, OutsideKnowledge, UnreadableNote):
            return None


class _KeptContents:
    """The contents used last, by the state of the note that the catalogue knows."""

    def __init__(self, capacity: int) -> None:
        self._left = capacity
        self._contents: OrderedDict[int, tuple[int, str]] = OrderedDict()

    def get(self, entry: Entry) -> str | None:
        """The content of exactly this state."""
        found = self._contents.get(entry.serial)
        if found is None or found[0] != entry.stamp:
            return None
        self._contents.move_to_end(entry.serial)
        return found[1]

    def put(self, entry: Entry, content: str) -> None:
        size = sys.getsizeof(content)
        if size > LARGEST_KEPT:
            return
        old = self._contents.pop(entry.serial, None)
        self._left += sys.getsizeof(old[1]) if old is not None else 0
        self._contents[entry.serial] = (entry.stamp, content)
        self._left -= size
        while self._left < 0:
            _, (_, dropped) = self._contents.popitem(last=False)
            self._left += sys.getsizeof(dropped)
