"""Note contents, read from the files through an LRU cache, and the snippets and sections of notes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import attrs
import trio
from attrs import frozen

from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.values.errors import StorageFailed
from lithos.kernel.values.limits import Fitting
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.note_reading import examine, make_entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import find_note
from lithos.notes.files.placeholders import FileInCloud
from lithos.notes.files.read_cache import Recall
from lithos.notes.files.values import Fingerprint, OutsideKnowledge, ReadFile, digest_of
from lithos.notes.format.document import parse_document
from lithos.notes.links.links import WikiLink
from lithos.notes.model.note import AssignedVersion, Document, with_creation
from lithos.notes.service.boilerplate import Frames
from lithos.notes.writing.editing import Outlines
from lithos.server.tools.short_snippets import escaped_length, rooms, shorten
from lithos.text.chunk import ChunkSizes
from lithos.text.excerpt_bounds import expects_more, first_block, tidy_edge
from lithos.text.hidden_text import hide, without_hidden
from lithos.text.markdown import visible_text
from lithos.text.outline.outline import Outline, Section
from lithos.text.snippet import Snippet, Terms, find_passage, first_prose, plain_passage
from lithos.text.yaml.layout import read_layout, unify_breaks
from lithos.text.yaml.nodes import UnreadableNote


@frozen
class OutlineRow:
    """A section in an answer, with its path, level, number of characters and hash."""

    section: str
    level: int
    chars: int
    hash: str


@frozen
class OutlinedText:
    """The outline of a note: the rows of all sections, and the text and the row of one section."""

    text: str
    rows: Sequence[OutlineRow] | None
    section: OutlineRow | None


class Sections:
    """Outlines of note files. Outlines that the writer has already made are reused."""

    def __init__(self, outlines: Outlines, *, keeps_heading: bool) -> None:
        """Create an instance that uses the outlines of the writer.

        If `keeps_heading` is set, a leading H1 counts as a section. In that case the title is stored
        elsewhere.
        """
        self._outlines = outlines
        self._keeps_heading = keeps_heading
        self._limiter = trio.CapacityLimiter(1)

    async def show(self, data: bytes, section: str | None, *, with_rows: bool) -> OutlinedText:
        """Return the outline of a note file. If `section` is given, include the text of that section.

        Raises `SectionNotFound` for an unknown section, and `InvalidInput` for a body with too many lines.
        """
        return await trio.to_thread.run_sync(self._show, data, section, with_rows, limiter=self._limiter)

    async def learn(self, data: bytes) -> None:
        """Read the outline of a note file in advance for the writer.

        Raises `InvalidInput` for a body with too many lines.
        """
        await trio.to_thread.run_sync(self._learn, data, limiter=self._limiter)

    def _learn(self, data: bytes) -> Outline:
        return self._outlines.read(read_layout(data, keeps_heading=self._keeps_heading))

    def _show(self, data: bytes, section: str | None, with_rows: bool) -> OutlinedText:
        outline = self._learn(data)
        newline = read_layout(data, keeps_heading=self._keeps_heading).newline
        rows = [_row(outline, each, newline) for each in outline.listed()] if with_rows else None
        if section is None:
            return OutlinedText("", rows, None)
        found = outline.find(section)
        text = unify_breaks(outline.text_of(found), newline)
        return OutlinedText(text, rows, _row(outline, found, newline))


def _row(outline: Outline, section: Section, newline: str) -> OutlineRow:
    text = outline.text_of(section)
    chars = len(text) - (text.count("\r\n") if newline == "\r\n" else 0)
    return OutlineRow(section.path, section.level, chars, outline.hash_of(section))


T = TypeVar("T")

#: Number of reader threads. On two cores, additional threads would only wait for the GIL.
READERS: Final = 2
#: Maximum number of bytes in all cached contents. This is enough for about 10,000 ordinary notes.
KEPT_BYTES: Final = 24 * 1024 * 1024
#: Maximum number of bytes in one cached content. Larger contents are always read from the file, because a few
#: of them would evict all others.
LARGEST_KEPT: Final = 64 * 1024
#: Maximum number of bytes in cached visible texts, from which snippets are cut. A visible text is cached only
#: if the content is cached.
KEPT_VISIBLE_BYTES: Final = 8 * 1024 * 1024
#: Maximum number of attempts to read a file. An attempt fails if the note gets a new version during the read.
REREADS: Final = 20
#: Minimum share of a query's weight in a passage. Below this share, the nearest chunk is shown instead.
FAIR_SHARE: Final = 0.35
#: Maximum number of characters that are processed on the event loop. Cutting snippets from this length takes
#: about a millisecond.
CHARACTERS_INLINE: Final = 64 * 1024


@frozen
class LoadedNote:
    """A note as it is now in its file, with the effective version of the file's bytes.

    `fingerprint` identifies this state of the file later, on systems where fingerprints are reliable.
    """

    source: ReadFile
    document: Document
    fingerprint: Fingerprint | None = None


@frozen
class _Content:
    """The current content of a file, and the hash of the whole file."""

    text: str
    digest: str


class NoteTexts:
    """Service that reads notes in worker threads and caches their contents.

    A cached content is valid only for one state of the note's catalogue entry.

    Each system call in a thread releases the GIL. If the event loop is busy, the thread waits up to a switch
    interval to get the GIL back. Under load, reading ten files delays a search by a tenth of a second.
    Contents of indexed states are therefore read from the cache if possible.
    """

    def __init__(self, files: NoteFiles, catalogue: Catalogue, opening: Opening | None = None) -> None:
        self._files = files
        self._opening = opening
        self._catalogue = catalogue
        self._limiter = trio.CapacityLimiter(READERS)
        self._kept = _KeptContents(KEPT_BYTES)
        self._visible = _KeptContents(KEPT_VISIBLE_BYTES)
        self._recall = Recall(files.fingerprint)
        catalogue.when_removed += [self._kept.forget, self._visible.forget, self._recall.forget]
        #: The texts that the notes of a folder share. These texts are omitted from snippets.
        self.frames = Frames(catalogue, self._read_texts, self._limiter)

    async def recall(self, entry: Entry) -> tuple[Document, tuple[WikiLink, ...]] | None:
        """Return the note and its links from the cache, or None.

        The file must not have changed since the note was read.
        """
        standing = self._catalogue.standing(entry.note.id)
        if standing is None or standing.digest != entry.digest:
            return None
        known = self._recall.get(entry)
        if known is None:
            return None
        version = max(standing.version, entry.note.version)
        note = entry.note if entry.note.version == version else attrs.evolve(entry.note, version=version)
        await self._save(note.id)
        return Document(note=note, content=known.content), known.links

    def remember(self, loaded: LoadedNote, links: tuple[WikiLink, ...]) -> None:
        """Cache a loaded note for `recall`, if the note is in the same state as its catalogue entry."""
        note = loaded.document.note
        entry = self._catalogue.get(note.id)
        if entry is None or loaded.fingerprint is None or entry.digest != loaded.source.digest:
            return
        if entry.note == note or entry.note == attrs.evolve(note, version=entry.note.version):
            kept, content = self._kept.get(entry), loaded.document.content
            self._recall.put(entry, loaded.fingerprint, kept if kept == content else content, links)

    async def load(self, entry: Entry) -> LoadedNote | None:
        """Load one note. If its file is missing or unreadable, return None.

        If the bytes are new, their version is stored before this method returns, so no later edit gets the
        same version.
        """
        for _ in range(REREADS):
            before = self._catalogue.standing(entry.note.id)
            loaded = await trio.to_thread.run_sync(self._load, entry, limiter=self._limiter)
            if loaded is None:
                return None
            version = self._known_version(loaded, entry.note.id, before)
            if version is None and self._opening is not None and self._opening.will_tell(before is not None):
                await self._opening.wait_known()
                continue
            if version is None:
                if await self._catalogue.records.decided(entry.note.id):
                    continue  # The file was read during a write that may have been reverted.
                version = self._judge(loaded, entry.note.id, before)
            if version is not None:
                await self._save(loaded.document.note.id)
                return _with_version(loaded, version, self._catalogue.get(entry.note.id))
        return None  # The file changed during every attempt.

    def _known_version(self, loaded: LoadedNote, note_id: str, before: AssignedVersion | None) -> int | None:
        """Return the version if the bytes are those of `before`, else None."""
        note = loaded.document.note
        if before is None or before.digest != loaded.source.digest or note.id != note_id:
            return None
        return max(before.version, note.version)

    def _judge(self, loaded: LoadedNote, note_id: str, before: AssignedVersion | None) -> int | None:
        """Return the version of new bytes. If a tool may have written since `before`, return None."""
        if before != self._catalogue.standing(note_id):
            return None
        note = loaded.document.note
        return self._catalogue.see_version(note.id, loaded.source.digest, note.version)

    async def find_unread(self, path: str) -> Entry | None:
        """Return the note at a path that the scan has not reached yet, or None. Raises `AliasedPath`."""
        stand_in, style = self._catalogue.records.id_at(path), self._catalogue.style

        def find() -> Entry | None:
            try:
                file = find_note(self._files, path)
            except OSError:
                return None
            seen = examine(self._files, file, None, stand_in, style) if file is not None else None
            return make_entry(seen, serial=0) if seen is not None and seen.document is not None else None

        return await trio.to_thread.run_sync(find, limiter=self._limiter)

    async def _save(self, note_id: str) -> None:
        """Wait until the assigned version is on disk. Raises `StorageFailed` after the time limit."""
        try:
            await self._catalogue.records.save(note_id)
        except trio.TooSlowError:
            raise StorageFailed(
                "The version of this note could not be stored in time because the disk is slow. Try again."
            ) from None

    async def why_unread(self, entry: Entry) -> str:
        """If a file is only in the cloud, return a colon and the reason, else an empty string."""

        def look() -> str:
            try:
                self._files.read(entry.path)
            except FileInCloud as away:
                return f": {away.strerror}; open the file to download it"
            except (OSError, OutsideKnowledge):
                return ""
            return ""

        return await trio.to_thread.run_sync(look, limiter=self._limiter)

    async def load_bytes(self, entry: Entry) -> bytes | None:
        """Return the stored bytes of a note's file. If the file is missing or unreadable, return None."""
        return await trio.to_thread.run_sync(self._load_bytes, entry.path, limiter=self._limiter)

    async def versioned(self, entries: Sequence[Entry]) -> list[tuple[str, int] | None]:
        """Return the content and its effective version for each note, or None for an unreadable note.

        The content of an indexed state comes from the cache. If a file has changed since it was indexed, it
        is read as in `load`.
        """
        found: list[tuple[str, int] | None] = []
        missing: list[int] = []
        for position, entry in enumerate(entries):
            kept = self._kept.get(entry)
            found.append(None if kept is None else (kept, self._version_of(entry)))
            if kept is None:
                missing.append(position)
        if not missing:
            return found
        wanted = [entries[position] for position in missing]
        read = await trio.to_thread.run_sync(self._read_contents, wanted, limiter=self._limiter)
        for position, content in zip(missing, read, strict=True):
            entry = entries[position]
            if content is not None and content.digest == entry.digest:
                self._kept.put(entry, content.text)
                found[position] = content.text, self._version_of(entry)
            elif (loaded := await self.load(entry)) is not None:
                found[position] = loaded.document.content, loaded.document.note.version
        return found

    def _version_of(self, entry: Entry) -> int:
        """Return the version of the note state that an entry describes."""
        standing = self._catalogue.standing(entry.note.id)
        if standing is None or standing.digest != entry.digest:
            return entry.note.version
        return max(standing.version, entry.note.version)

    async def map_contents(self, entries: Sequence[Entry], work: Callable[[int, str], T]) -> list[T | None]:
        """Run `work` on the content of each note. For an unreadable note, the result is None.

        `work` gets the position of the note and its content in the indexed state. If the file has changed
        since then, `work` gets the new content. `work` may run in a worker thread.
        """
        contents = await self._contents(entries)

        def run() -> list[T | None]:
            return [None if content is None else work(i, content) for i, content in enumerate(contents)]

        if sum(map(len, filter(None, contents))) <= CHARACTERS_INLINE:
            return run()
        return await trio.to_thread.run_sync(run, limiter=self._limiter)

    async def map_visible(
        self, entries: Sequence[Entry], work: Callable[[int, str, str], T]
    ) -> list[T | None]:
        """Run `work` like `map_contents`, but also pass the visible text.

        The visible text is made once per state of a note.
        """
        visible = [self._visible.get(entry) for entry in entries]
        if None in visible:
            unseen = [entry for entry, text in zip(entries, visible, strict=True) if text is None]
            await self.frames.learn(unseen)
        made: list[tuple[Entry, str, str]] = []

        def run(position: int, content: str) -> T:
            text = visible[position]
            if text is None:
                frame = self.frames.of(entries[position])
                text = visible_text(without_hidden(hide(content, frame)) if frame.shared else content)
                made.append((entries[position], content, text))
            return work(position, content, text)

        results = await self.map_contents(entries, run)
        for entry, content, text in made:
            # The text is cached only if it was made from the indexed content, not from a file that has
            # changed since then.
            if self._kept.get(entry) is content:
                self._visible.put(entry, text)
        return results

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
            source, fingerprint = self._files.read_stable(entry.path)
            return LoadedNote(source, self._parse(source, entry), fingerprint)
        except (OSError, OutsideKnowledge, UnreadableNote):
            return None

    def _parse(self, source: ReadFile, entry: Entry) -> Document:
        modified, style = from_nanoseconds(source.state.mtime_ns), self._catalogue.style
        document = parse_document(source.data, entry.path, modified, entry.note.id, style)
        note = with_creation(document.note, modified, entry.note.created_at)
        return document if note is document.note else attrs.evolve(document, note=note)

    def _load_bytes(self, path: str) -> bytes | None:
        try:
            return self._files.read(path).data
        except (OSError, OutsideKnowledge):
            return None

    def _read_texts(self, entries: Sequence[Entry]) -> list[str | None]:
        return [None if content is None else content.text for content in self._read_contents(entries)]

    def _read_contents(self, entries: Sequence[Entry]) -> list[_Content | None]:
        return [self._read_content(entry) for entry in entries]

    def _read_content(self, entry: Entry) -> _Content | None:
        """Return only the content of a note. Reading the frontmatter too would take ten times as long."""
        try:
            data = self._files.read(entry.path).data
            keeps_heading = self._catalogue.style.is_foreign
            return _Content(read_layout(data, keeps_heading=keeps_heading).content, digest_of(data))
        except (OSError, OutsideKnowledge, UnreadableNote):
            return None


def _with_version(loaded: LoadedNote, version: int, known: Entry | None) -> LoadedNote:
    """Return the note with its version.

    If the file is unchanged, the update time comes from the catalogue.
    """
    document = loaded.document
    values: dict[str, Any] = {"version": version}
    if known is not None and known.digest == loaded.source.digest:
        values["updated_at"] = known.note.updated_at
    if all(getattr(document.note, name) == value for name, value in values.items()):
        return loaded
    note = attrs.evolve(document.note, **values)
    return attrs.evolve(loaded, document=attrs.evolve(document, note=note))


class _KeptContents(Fitting[int, tuple[int, str]]):
    """An LRU cache of contents with a size limit in bytes.

    An item is valid for one stamp of its catalogue entry.
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, lambda kept: sys.getsizeof(kept[1]))

    def get(self, entry: Entry) -> str | None:
        """Return the cached content for exactly this state of the note, or None."""
        found = self._kept.get(entry.serial)
        if found is None or found[0] != entry.stamp:
            return None
        self._kept.move_to_end(entry.serial)
        return found[1]

    def put(self, entry: Entry, content: str) -> None:
        if sys.getsizeof(content) <= LARGEST_KEPT:
            self._keep(entry.serial, (entry.stamp, content))


#: Number of JSON characters in a compact row, not counting title, path and snippet.
ROW_BESIDE: Final = 157


@frozen
class Snippets:
    """Service that creates the snippets of search results."""

    _texts: NoteTexts
    _sizes: ChunkSizes

    async def cut(
        self,
        entries: Sequence[Entry],
        terms: Terms,
        chunks: Mapping[int, int],
        *,
        of_chunks: bool = False,
        room: int = 0,
    ) -> list[str | None]:
        """Return one snippet per note. If the file of a note is missing or unreadable, its snippet is None.

        `room` is the maximum number of JSON characters in all rows, including ids, titles and paths. 0 means
        no limit.

        `chunks` maps the serial number of a note to its nearest chunk. The chunk is shown if no passage has a
        fair share of the query's weight. With `of_chunks`, the chunk is always shown.
        """

        def cut_one(position: int, content: str, visible: str) -> str:
            entry = entries[position]
            number = chunks.get(entry.serial)
            passage = find_passage(visible, terms) if number is None or not of_chunks else Snippet("", 0.0)
            if number is not None and passage.share < FAIR_SHARE:
                text = self._nearest_text(entry, content, number)
                if text:
                    return text
            return passage.text or first_prose(visible)

        snippets = await self._texts.map_visible(entries, cut_one)
        if not room:
            return snippets
        beside = sum(ROW_BESIDE + escaped_length(each.note.title + each.path) for each in entries)
        shares = rooms(len(entries), max(0, room - beside))
        return [each and shorten(each, terms, most) for each, most in zip(snippets, shares, strict=True)]

    def _nearest_text(self, entry: Entry, content: str, number: int) -> str:
        """Return a chunk as readable text. The chunk is extended to whole lines or sentences.

        If a chunk contains only headings, the next or the preceding chunk is used.
        """
        spans = list(islice(self._sizes.spans(entry.note.title, content), number + 2))
        shown = hide(content, self._texts.frames.of(entry))
        for place in (number, number + 1, number - 1):
            if 0 <= place < len(spans):
                start, end = max(0, spans[place][0]), spans[place][1]
                least = max(0, spans[place - 1][0]) if place else 0
                if place and shown[start - 1] != "\n":
                    start = tidy_edge(shown, start, least)
                if shown[end : end + 1] not in ("", "\n"):
                    end = tidy_edge(shown, end, start)
                text = plain_passage(without_hidden(shown[start:end]))
                if text:
                    return text + _reply(shown, end) if expects_more(text) else text
        return ""


def _reply(shown: str, end: int) -> str:
    """Return the readable block after a chunk that ends with a question or a colon."""
    begin = len(shown) - len(shown[end:].lstrip())
    reply = plain_passage(without_hidden(shown[begin : first_block(shown, begin, len(shown))]))
    return f"\n{reply}" if reply else ""
