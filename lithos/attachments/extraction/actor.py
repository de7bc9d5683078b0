"""The actor `Attaching`, which keeps attachments searchable (docs/spec/attachments.md).

The actor gets notifications from the watcher and also surveys the folder regularly. After the notes are
searchable, a separate process reads the files (`extractor`). The actor stores the texts in a database
(`shelf`) and in two separate indexes, so that attachments do not change the word frequencies of the notes. It
replaces the lists of files on the event loop, because searches read them there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import trio
from attrs import define, field, frozen

from lithos.attachments.extraction.captions import Captions
from lithos.attachments.extraction.extractor import Extractor, FileExtraction
from lithos.attachments.files.folder_scan import look_at, survey_attachments
from lithos.attachments.files.shelf import AttachedFile, Shelf, StoredPart
from lithos.attachments.model.kinds import MOST_PARTS, kind_of
from lithos.attachments.model.parts import FilePart
from lithos.kernel.actors.threads import BackgroundThread, Blocking, Threads
from lithos.kernel.databases.sqlite import CorruptDatabase, DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import IndexFailed
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import open_attachment
from lithos.notes.files.values import FileState
from lithos.notes.links.links import file_key, named_file
from lithos.notes.model.note_projects import DEFAULT_RULES, ProjectRules
from lithos.search.index.chunk_rows import VectorEntry
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_schema import FulltextEntry
from lithos.search.index.vectors import VectorIndex
from lithos.search.indexing.ports import EmbeddedNotes
from lithos.search.indexing.semantic import SemanticBackend
from lithos.text.chunk import ChunkSizes, dates_in_words

log = get_logger("lithos.attachments")

#: Folder of the attachment indexes, relative to `.lithos`.
FOLDER: Final = "attachments"
#: Seconds that a file must stay unchanged before it is read.
QUIET: Final = 0.5
#: Seconds between two surveys: if the watcher reports changes, and if it does not.
SURVEY, SURVEY_BLIND = 60.0, 1.0
#: Seconds to wait after a failed attempt to open or store a file.
RETRY: Final = 30.0
#: Seconds to wait before changed vectors are saved.
SAVE: Final = 30.0
#: Maximum number of parts in all files together, enough for some hundred large books.
MOST_IN_ALL: Final = 200_000
#: Number of parts to index in one batch: normally, and while a write is running. The smaller batch leaves the
#: interpreter to the write.
BATCH: Final = 64
BESIDE_WRITER: Final = 16
#: Pauses in indexing while writes are running: pause as a multiple of the indexing time, maximum pause in
#: seconds, and seconds between two checks. A pause ends early if no write is running. If the queue was empty,
#: the first `BATCH` parts are indexed without a pause.
RESTS: Final = 12.0
LONGEST_REST: Final = 5.0
LOOK: Final = 0.25
#: Maximum number of files to read before they are indexed. One commit takes as long as reading many small
#: files.
GATHERED: Final = 64

_Failures = (OSError, DatabaseFailed, CorruptDatabase, IndexFailed)


@frozen
class ReadingBacklog:
    """Reading progress: files to read, read files and parts, unread files by cause, and the error."""

    waiting: int
    files: int
    parts: int
    unread: Mapping[str, int]
    trouble: str | None


@define(eq=False, slots=False)
class Attaching:
    """The attachment actor. Call `run` in the background, and all other methods on the event loop."""

    _files: NoteFiles
    _private: Path
    _semantic: SemanticBackend
    _sizes: ChunkSizes
    _captions: Captions
    _clock: Callable[[], datetime]
    #: Function that returns whether the watcher reports changes. If not, surveys must find them.
    _is_told: Callable[[], bool]
    #: Awaited before the first file is read, so that notes are indexed first.
    _notes_first: Callable[[], Awaitable[None]]
    #: Returns the number of note changes so far.
    _changes: Callable[[], int]
    is_enabled: bool
    extractor: Extractor = field(factory=Extractor)
    #: Draws pages for people. It is separate, so that people need not wait for a file that is being read.
    drawer: Extractor = field(factory=Extractor)
    _working: Blocking = field(factory=lambda: BackgroundThread("lithos-attachments"))
    _looking: Blocking = field(factory=Threads)
    #: The rules that find the project of a file from its folder.
    projects: ProjectRules = DEFAULT_RULES
    #: The language of all files. None if each file has its own.
    language: str | None = None
    #: Runs the database queries of readers.
    reading: Blocking = field(factory=Threads)
    #: All known files by path. Below them: the paths by file number and by file id.
    files: dict[str, AttachedFile] = field(factory=dict, init=False)
    numbers: dict[int, str] = field(factory=dict, init=False)
    ids: dict[str, str] = field(factory=dict, init=False)
    _names: dict[str, set[str]] = field(factory=dict, init=False)
    parts: int = field(default=0, init=False)
    #: None until the database is open. The vectors stay None if there is no model.
    shelf: Shelf | None = field(default=None, init=False)
    fulltext: FulltextIndex | None = field(default=None, init=False)
    vectors: EmbeddedNotes | None = field(default=None, init=False)
    trouble: str | None = field(default=None, init=False)
    #: The time at which each path will be read, on trio's clock.
    _due: dict[str, float] = field(factory=dict, init=False)
    _again: set[str] = field(factory=set, init=False)
    _gathered: list[AttachedFile] = field(factory=list, init=False)
    _is_reading: bool = field(default=False, init=False)
    #: Number of parts indexed since the queue was last empty.
    _in_a_row: int = field(default=0, init=False)
    #: Set after the first survey of the folder is complete.
    surveyed: trio.Event = field(factory=trio.Event, init=False)
    _survey_at: float = field(default=0.0, init=False)
    _changed: trio.Event = field(factory=trio.Event, init=False)
    _saved_at: float = field(default=0.0, init=False)

    # -- public queries ----------------------------------------------------------------------------

    def backlog(self) -> ReadingBacklog:
        """Return the reading progress for health, the attachment list and the terminal."""
        unread: dict[str, int] = {}
        for each in self.files.values():
            if each.state in ("failed", "missing", "left", "cut"):
                unread[each.state] = unread.get(each.state, 0) + 1
        waiting = len(self._due) + len(self._gathered) + self._is_reading
        return ReadingBacklog(waiting, len(self.files), self.parts, unread, self.trouble)

    def named(self, target: str) -> frozenset[str]:
        """Return the paths of all files to which a link target may refer, found by file name."""
        return frozenset(self._names.get(named_file(target), ()))

    async def caught_up(self) -> None:
        """Wait until every known file has been read or has failed."""
        while self.is_enabled and not (
            self.surveyed.is_set() and not self._due and not self._gathered and not self._is_reading
        ):
            await self._changed.wait()

    def notice(self, paths: Iterable[str]) -> None:
        """Queue the paths of changes that the watcher reported."""
        if not self.is_enabled:
            return
        now = trio.current_time()
        for path in paths:
            if any(part.startswith(".") for part in path.split("/")):
                continue
            if kind_of(path) is not None:
                # Deleted files are handled at once. Other files are read after a period without changes.
                self._enqueue(path, now if path in self.files and not self._is_there(path) else now + QUIET)
            elif not path.endswith(".md"):
                self._survey_at = min(
                    self._survey_at, now + QUIET
                )  # maybe a folder, whose files are not reported individually
        self._wake()

    def _is_there(self, path: str) -> bool:
        return os.path.lexists(os.path.join(self._files.root, path))

    def _enqueue(self, path: str, due: float) -> None:
        self._due[path] = due
        if path in self.files and due <= trio.current_time():
            self._hide(path)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    # -- the task ----------------------------------------------------------------------------------

    async def run(self) -> None:
        """Background task: keeps lists and indexes up to date until it is cancelled."""
        if not self.is_enabled:
            return
        await self._notes_first()
        await self._open_at_last()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_surveying)
                nursery.start_soon(self._keep_captions)
                await self._keep_reading()
        finally:
            with trio.CancelScope(shield=True):
                await self.extractor.close()
                await self.drawer.close()
                await self._attempt("closing", self._close)

    async def _open_at_last(self) -> None:
        """Open the database and the indexes. Failed attempts, for example on a full disk, are repeated."""
        while True:
            if await self._attempt("opening", self._open):
                return
            await trio.sleep(RETRY)

    async def _attempt(self, what: str, step: Callable[[], Awaitable[None]]) -> bool:
        """Run one step and return whether it succeeded. Health shows its error until a later success."""
        try:
            await step()
        except _Failures as failure:
            trouble = f"{what}: {failure}"
            if self.trouble != trouble:
                log.error("attachment step failed", reason=trouble)
            self.trouble = trouble
            return False
        self.trouble = None
        return True

    async def _open(self) -> None:
        def opening() -> tuple[Shelf, list[AttachedFile], FulltextIndex, EmbeddedNotes | None]:
            if self.shelf is not None:  # another step failed after the shelf was opened
                self.shelf.close()
            if self.fulltext is not None:
                self.fulltext.close()
            self.shelf = shelf = Shelf.open(self._private / "attachments.db", self._clock())
            folder = self._private / FOLDER
            self.fulltext = fulltext = FulltextIndex.open(folder / "fulltext", self.language)
            vectors = None
            if (static := self._semantic.port.target) is not None and self._semantic.reason is None:
                index = VectorIndex.open(folder / "vectors", static.embedder.identity)
                vectors = EmbeddedNotes(static.embedder, index)
            return shelf, shelf.load(), fulltext, vectors

        _, files, fulltext, self.vectors = await self._working.run(opening)
        stamps = {serial: stamp for each in files for serial, stamp in self._stamps(each).items()}
        stale = await self._working.run(lambda: self._compare(fulltext, stamps))
        for each in files:
            if stale.isdisjoint(each.serials()):
                self._show(each)
            else:
                self._gathered.append(each)
        await self._flush()

    def _stamps(self, file: AttachedFile) -> dict[int, int]:
        return file.stamps(self.projects.of_path(file.path))

    def _compare(self, fulltext: FulltextIndex, stamps: Mapping[int, int]) -> set[int]:
        """Return the serials that the index lacks, and delete serials without a file from it. Blocks."""
        held: list[Mapping[int, int]] = [fulltext.stamps()]
        if self.vectors is not None:
            held.append(self.vectors.vectors.stamps())
        surplus = [serial for of_index in held for serial in of_index if serial not in stamps]
        self._remove(surplus)
        return {serial for of_index in held for serial in stamps if of_index.get(serial) != stamps[serial]}

    async def _close(self) -> None:
        def closing() -> None:
            if self.vectors is not None and self.vectors.vectors.dirty:
                self.vectors.vectors.save()
            if self.fulltext is not None:
                self.fulltext.close()
            if self.shelf is not None:
                self.shelf.close()

        await self._working.run(closing)

    async def _keep_surveying(self) -> None:
        while True:
            began = trio.current_time()
            if await self._attempt("looking", self._survey):
                self.surveyed.set()
            took = trio.current_time() - began
            self._survey_at = trio.current_time() + (
                SURVEY if self._is_told() else max(SURVEY_BLIND, 3 * took)
            )
            self._wake()
            while trio.current_time() < self._survey_at:
                with trio.move_on_at(self._survey_at):
                    await self._changed.wait()

    async def _survey(self) -> None:
        found = await self._looking.run(lambda: survey_attachments(self._files))
        now = trio.current_time()
        for path in [path for path in self.files if path not in found]:
            self._enqueue(path, now)
        for path, state in found.items():
            if self._is_news(path, state) and path not in self._due:
                self._due[path] = now

    def _is_news(self, path: str, state: FileState) -> bool:
        known = self.files.get(path)
        # A missing library may have been installed since the last start.
        return (
            known is None or known.file != state or (known.state == "missing" and not self.surveyed.is_set())
        )

    async def _keep_captions(self) -> None:
        """Queue the images whose notes have changed, because captions come from the text of these notes."""
        while True:
            await trio.sleep(2.0)
            images = [path for path in self.files if kind_of(path) == "image"]
            changed = await self._captions.changed(images) if images else ()
            for path in changed:
                self._again.add(path)
                self._due.setdefault(path, trio.current_time())
            if changed:
                self._wake()

    async def _keep_reading(self) -> None:
        while True:
            changed = self._changed
            now = trio.current_time()
            due = [path for path, at in self._due.items() if at <= now]
            if due:
                for path in sorted(due, key=lambda each: (kind_of(each) == "pdf", each)):
                    if self._due.get(path, now + 1) <= trio.current_time():
                        await self._read_next(path)
                continue
            if self._gathered and not await self._attempt("indexing", self._flush):
                with trio.move_on_after(RETRY):
                    await changed.wait()
                continue
            self._in_a_row = 0
            self._wake()
            changed = self._changed
            with trio.move_on_at(min([*self._due.values(), now + SAVE])):
                await changed.wait()
            await self._save()

    async def _read_next(self, path: str) -> None:
        del self._due[path]
        self._is_reading = True
        try:
            if not await self._attempt(f"reading {path}", partial(self._take, path)):
                self._due.setdefault(path, trio.current_time() + RETRY)
            if sum(max(1, each.parts) for each in self._gathered) >= GATHERED:
                await self._attempt("indexing", self._flush)
        finally:
            self._is_reading = False

    async def _save(self) -> None:
        vectors = None if self.vectors is None else self.vectors.vectors
        if vectors is not None and vectors.dirty and trio.current_time() >= self._saved_at + SAVE:
            self._saved_at = trio.current_time()
            await self._attempt("saving vectors", lambda: self._working.run(vectors.save))

    # -- one file ----------------------------------------------------------------------------------

    async def _take(self, path: str) -> None:
        """Update the text of one file: read the file again, or remove its text if the file was deleted."""
        is_again = path in self._again
        self._again.discard(path)
        state = await self._looking.run(lambda: look_at(self._files, path))
        known = self._known(path)
        if state is None:
            await self._drop(path)
        elif is_again or self._is_news(path, state) or self._is_hidden(path):
            await self._read(path, state, known)

    def _known(self, path: str) -> AttachedFile | None:
        return next((each for each in self._gathered if each.path == path), None) or self.files.get(path)

    def _is_hidden(self, path: str) -> bool:
        return path in self.files and self.files[path].number not in self.numbers

    async def _drop(self, path: str) -> None:
        self._hide(path)
        known = self._known(path)
        gone = self.files.pop(path, None)
        if gone is not None:
            self.ids.pop(gone.id, None)
            self._names.get(file_key(path), set()).discard(path)
        self._gathered = [each for each in self._gathered if each.path != path]
        if known is not None:
            await self._working.run(lambda: self._forget(known))

    def _forget(self, file: AttachedFile) -> None:
        self._remove(file.serials())
        self._opened_shelf().remove([file.number])

    async def _read(self, path: str, state: FileState, known: AttachedFile | None) -> None:
        shelf = self._opened_shelf()
        number = await self._working.run(shelf.begin)
        count = 0

        async def take(parts: Sequence[FilePart]) -> None:
            nonlocal count
            kept, first = list(parts[: MOST_PARTS - count]), count
            await self._working.run(lambda: shelf.add(number, first, kept))
            count += len(kept)

        try:
            read = await self._extract(path, known, take)
            now = await self._looking.run(lambda: look_at(self._files, path))
        except BaseException:
            with trio.CancelScope(shield=True):
                await self._working.run(lambda: shelf.remove([number]))
            raise
        if read is None or now != state:  # the file was deleted or changed during the reading
            await self._working.run(lambda: shelf.remove([number]))
            self._due.setdefault(path, trio.current_time() + QUIET)
        elif read.state == "unchanged" and known is not None:
            same = attrs.evolve(known, file=state)
            await self._working.run(lambda: _replace(shelf, same, number))
            self._show(same)
        else:
            assert read.state != "unchanged"
            file = AttachedFile(number, path, state, read.digest or "", read.state, read.reason, count)
            self._gathered = [each for each in self._gathered if each.path != path]
            if count:
                self._gathered.append(file)
            else:
                await self._settle([file])

    async def _extract(
        self, path: str, known: AttachedFile | None, take: Callable[[Sequence[FilePart]], Awaitable[None]]
    ) -> FileExtraction | None:
        """Return the result of reading a file, or None if the file can no longer be opened."""
        kind = kind_of(path)
        assert kind is not None
        if self.parts >= MOST_IN_ALL and (known is None or not known.parts):
            return FileExtraction(
                "left", f"the limit of {self.parts:,} pages and parts in all files is reached", None, 0
            )
        digest = (
            known.digest or None if known is not None and known.state in ("whole", "cut", "failed") else None
        )
        if kind == "image":
            return await self._caption(path, digest, take)
        opened = await self._looking.run(lambda: open_attachment(self._files, path))
        if opened is None:
            return None
        with opened.file:
            return await self.extractor.extract(opened.file.fileno(), kind, opened.name, digest, take)

    async def _caption(
        self, path: str, known: str | None, take: Callable[[Sequence[FilePart]], Awaitable[None]]
    ) -> FileExtraction:
        text = await self._captions.text_of(path)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        if digest == known:
            return FileExtraction("unchanged", "", digest, 0)
        await take([FilePart("", text)])
        return FileExtraction("whole", "", digest, 1)

    # -- the indexes -------------------------------------------------------------------------------

    async def _flush(self) -> None:
        """Index all files that were read since the last flush. Then make them visible to searches."""
        files = list(self._gathered)
        for each in files:
            first, count = 0, BATCH
            while first < each.parts:
                before, began = self._changes(), trio.current_time()
                await self._working.run(partial(self._index, each, first, count))
                first += count
                self._in_a_row += count
                if self._in_a_row >= BATCH and self._changes() != before:
                    await self._rest(before, RESTS * (trio.current_time() - began))
                    count = BESIDE_WRITER
        await self._settle(files)
        self._gathered = [each for each in self._gathered if each not in files]
        self._wake()

    async def _rest(self, changes: int, seconds: float) -> None:
        """Sleep up to `seconds`, or until no write is running, so that writers can use the interpreter."""
        with trio.move_on_after(min(seconds, LONGEST_REST)):
            while (now := self._changes()) != changes:
                changes = now
                await trio.sleep(LOOK)

    async def _settle(self, files: Sequence[AttachedFile]) -> None:
        """Replace the earlier text of each file by the newly read text."""
        shelf = self._opened_shelf()
        for each in files:
            before = self.files.get(each.path)
            await self._working.run(partial(shelf.finish, each))
            self._show(each)
            if before is not None and before.number != each.number:
                await self._working.run(partial(self._remove, before.serials()))

    def _index(self, file: AttachedFile, first: int, count: int) -> None:
        stamps = self._stamps(file)
        stored = self._opened_shelf().stored(file.number, first, count)
        words, texts = list[FulltextEntry](), list[str]()
        bounds: list[tuple[int, int]] = []
        for each in stored:
            entry, embedded = self._entry(file, each, stamps[each.serial])
            words.append(entry)
            bounds.append((len(texts), len(texts) + len(embedded)))
            texts += embedded
        assert self.fulltext is not None
        self.fulltext.apply(words, ())
        if self.vectors is not None:
            made = self.vectors.embedder.encode(texts, one_core=True)
            entries = [
                VectorEntry(entry.serial, entry.stamp, made[begin:end])
                for entry, (begin, end) in zip(words, bounds, strict=True)
            ]
            self.vectors.vectors.apply(entries, ())

    def _entry(self, file: AttachedFile, stored: StoredPart, stamp: int) -> tuple[FulltextEntry, list[str]]:
        text, title = stored.part.text, title_of(file.path)
        passages = self._sizes.chunks(title, text)
        entry = FulltextEntry(
            serial=stored.serial,
            stamp=stamp,
            id=file.id,
            title=title,
            headings="",
            body=text,
            entities=(),
            tags=(),
            author="",
            path=file.path,
            namespace="",
            updated_at=from_nanoseconds(file.file.mtime_ns),
            passages=tuple(passage.indexed for passage in passages),
            dates=dates_in_words(text),
            projects=self.projects.of_path(file.path),
        )
        return entry, [passage.embedded for passage in passages]

    def _remove(self, serials: Iterable[int]) -> None:
        gone = list(serials)
        if gone and self.fulltext is not None:
            self.fulltext.apply((), gone)
        if gone and self.vectors is not None:
            self.vectors.vectors.apply((), gone)

    # -- the lists ---------------------------------------------------------------------------------

    def _show(self, file: AttachedFile) -> None:
        self._hide(file.path)
        self.files[file.path] = file
        self.ids[file.id] = file.path
        self._names.setdefault(file_key(file.path), set()).add(file.path)
        self.numbers[file.number] = file.path
        self.parts += file.parts

    def _hide(self, path: str) -> None:
        """Exclude a file from searches immediately."""
        known = self.files.get(path)
        if known is not None and self.numbers.pop(known.number, None) is not None:
            self.parts -= known.parts

    def _opened_shelf(self) -> Shelf:
        assert self.shelf is not None
        return self.shelf


def title_of(path: str) -> str:
    """Return the name of a file without its suffix."""
    name = path.rpartition("/")[2]
    lowered = name.lower()
    ending = ".excalidraw.md" if lowered.endswith(".excalidraw.md") else os.path.splitext(name)[1]
    return name[: len(name) - len(ending)] or name


def _replace(shelf: Shelf, file: AttachedFile, unused: int) -> None:
    shelf.remove([unused])
    shelf.finish(file)
