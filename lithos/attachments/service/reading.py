"""Reading and listing attachments: texts of pages and places, and images."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from attrs import define, evolve, field, frozen

from lithos.attachments.extraction.actor import Attaching
from lithos.attachments.extraction.captions import Captions
from lithos.attachments.extraction.extractor import DrawingFailed
from lithos.attachments.files.shelf import AttachedFile
from lithos.attachments.model.kinds import MEDIA, FileKind, kind_of
from lithos.attachments.model.parts import FilePart
from lithos.kernel.actors.threads import Blocking, Threads
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.values.errors import DocNotFound, InvalidInput
from lithos.kernel.values.graphemes import beginning
from lithos.kernel.values.projects import ProjectFilter
from lithos.kernel.values.times import from_nanoseconds
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import open_attachment
from lithos.text.snippet import cut, truncate

#: Maximum size of a returned image in bytes. In base64 this is 4 MB.
LARGEST_IMAGE: Final = 3 * 1024 * 1024
#: Maximum number of notes that a row lists because they show the file.
MOST_SHOWING: Final = 5
#: Maximum number of characters to join for one read. No file has a longer text.
MOST_TEXT: Final = 8_000_000


@frozen(kw_only=True)
class AttachmentRead:
    """A file or one of its places.

    `image` contains the bytes of an image. `content` is the text from `offset`.
    """

    file: AttachedFile
    kind: FileKind
    content: str
    length: int
    next_offset: int | None
    part: FilePart | None
    image: bytes | None
    reason: str


@define(eq=False)
class AttachmentReading:
    """Service that reads attachments."""

    _attaching: Attaching
    _catalogue: Catalogue
    _captions: Captions
    _files: NoteFiles
    _looking: Blocking = field(factory=Threads)

    @property
    def is_enabled(self) -> bool:
        """Return whether attachments are found and read (setting `attachments.enabled`)."""
        return self._attaching.is_enabled

    def find(self, note_id: str | None, path: str | None) -> AttachedFile | None:
        """Return the file with an id, at a path, or with a file name in any folder, as in wiki-links."""
        files = self._attaching.files
        if note_id is not None:
            known = self._attaching.ids.get(note_id)
            return None if known is None else files.get(known)
        if path is None or kind_of(path) is None:
            return None
        if path in files:
            return files[path]
        named = self._attaching.named(path) if "/" not in path else ()
        return files[min(named, key=lambda each: (each.count("/"), each))] if named else None

    def is_meant(self, note_id: str | None, path: str | None) -> bool:
        """Return whether a read refers to an attachment rather than to a note such as `report.pdf.md`."""
        if note_id is not None:
            return note_id.startswith("att_")
        if path is None or kind_of(path) is None:
            return False
        return self._catalogue.at_path(f"{path}.md") is None or self.find(None, path) is not None

    async def read(
        self, note_id: str | None, path: str | None, place: str | None, offset: int, max_length: int | None
    ) -> AttachmentRead:
        """Return the text of a place or of the complete file, or an image.

        Raises `DocNotFound`, `InvalidInput`.
        """
        file = self.find(note_id, path)
        if file is None:
            raise DocNotFound(self._missing(note_id or path or ""))
        kind = kind_of(file.path)
        assert kind is not None
        truncate("", max_length)  # reject an invalid length before reading the file
        parts = await self._parts(file, place)
        if place is not None and not parts:
            raise DocNotFound(self._no_place(file, kind, place))
        text = parts[0].text if place is not None else join_parts(kind, parts)
        shown, length = text[offset:], len(text)
        is_cut = bool(max_length) and len(shown) > (max_length or 0)
        content, end = cut(shown, max_length) if is_cut and max_length else (shown, 0)
        image, reason = (await self._image(file)) if kind == "image" else (None, file.reason)
        return AttachmentRead(
            file=file,
            kind=kind,
            content=content,
            length=length,
            next_offset=offset + end if is_cut else None,
            part=parts[0] if place is not None else None,
            image=image,
            reason=reason,
        )

    async def read_page(self, path: str, place: str | None, offset: int, max_length: int) -> AttachmentRead:
        """Return the text of one place. For a PDF page without text, return an empty text."""
        try:
            return await self.read(None, path, place, offset, max_length)
        except DocNotFound:
            file = self.find(None, path)
            if file is None or kind_of(file.path) != "pdf" or not _is_page(place):
                raise
            whole = await self.read(None, path, None, 0, 1)
            return evolve(whole, content="", length=0, next_offset=None)

    async def last_page(self, file: AttachedFile) -> int:
        """Return the last page with text of a PDF file, or 0 if no page has text."""
        shelf = self._attaching.shelf
        if shelf is None:
            return 0
        return await self._attaching.reading.run(lambda: shelf.last_page(file.number))

    async def _parts(self, file: AttachedFile, place: str | None) -> Sequence[FilePart]:
        shelf = self._attaching.shelf
        if shelf is None:
            return []
        try:
            return await self._attaching.reading.run(lambda: shelf.text_of(file.number, place))
        except DatabaseFailed as failure:
            raise InvalidInput(
                f"The text of {file.path} cannot be read now: {failure}. Try again."
            ) from failure

    async def _image(self, file: AttachedFile) -> tuple[bytes | None, str]:
        def look() -> tuple[bytes | None, str]:
            opened = open_attachment(self._files, file.path)
            if opened is None:
                return None, "the file no longer exists"
            with opened.file:
                if opened.size > LARGEST_IMAGE:
                    return None, f"the image has {opened.size:,} bytes, and the limit is {LARGEST_IMAGE:,}"
                return opened.file.read(LARGEST_IMAGE + 1)[:LARGEST_IMAGE], ""

        return await self._looking.run(look)

    def _missing(self, name: str) -> str:
        if not self.is_enabled:
            return (
                f"{name[:200]} is not a note, and other files are not read because "
                "attachments.enabled is off. Set it and restart the server."
            )
        return f"Unknown file {name[:200]}. To list all files, call lithos_list with kinds=['attachment']."

    def _no_place(self, file: AttachedFile, kind: FileKind, place: str) -> str:
        if file.state in ("failed", "missing", "left"):
            return f"{file.path} has no text: {file.reason}."
        if kind == "pdf":
            return f"{file.path} has no text on page {place[:40]}; it has text on {file.parts} pages."
        return f"{file.path} has no place {place[:200]!r}. Leave place out to read the whole file."

    async def draw(self, path: str, page: int, width: int) -> bytes:
        """Return a page of a PDF file as PNG, `width` pixels wide. Raises `DocNotFound`, `InvalidInput`."""
        file = self.find(None, path)
        opened = None
        if file is not None and kind_of(file.path) == "pdf":
            known = file.path
            opened = await self._looking.run(lambda: open_attachment(self._files, known))
        if opened is None:
            raise DocNotFound(f"Unknown PDF file {path[:200]}.")
        with opened.file:
            try:
                return await self._attaching.drawer.draw(opened.file.fileno(), page, width)
            except DrawingFailed as failure:
                raise InvalidInput(f"Page {page} of {path[:200]} cannot be drawn: {failure}.") from failure

    def showing(self, file: AttachedFile, most: int = MOST_SHOWING) -> list[Entry]:
        """Return the notes that embed or link a file, sorted by title."""
        return self.showing_at(file.path, most)

    def showing_at(self, path: str, most: int = MOST_SHOWING) -> list[Entry]:
        """Return the notes that embed or link the file at a path, sorted by title."""
        entry = self._catalogue.at_path(path) if path.endswith(".md") else None
        if entry is None:
            return self._captions.showing(path, most)
        linking = self._catalogue.graph.links.neighbours(entry.note.id)[1]
        found = [each for one in linking if isinstance(one, str) and (each := self._catalogue.get(one))]
        return sorted(found, key=lambda each: (each.note.title.casefold(), each.path))[:most]

    def embedded(self, targets: Iterable[str], most: int = 20) -> list[AttachedFile]:
        """Return the files with text that a note's link targets name, without duplicates."""
        if not self.is_enabled:
            return []
        files = self._attaching.files
        paths = {path for target in targets for path in self._attaching.named(target)}
        return sorted((files[path] for path in paths if files[path].parts), key=lambda file: file.path)[:most]

    def listed(
        self,
        path_prefix: str | None,
        name_contains: str | None,
        since: datetime | None,
        project: ProjectFilter | None = None,
    ) -> list[AttachedFile]:
        """Return all files that match the filters, sorted by path."""
        rules = self._attaching.projects
        wanted = (name_contains or "").casefold()
        return [
            file
            for path, file in sorted(self._attaching.files.items())
            if path.startswith(path_prefix or "")
            and wanted in file.name.casefold()
            and (since is None or from_nanoseconds(file.file.mtime_ns) >= since)
            and (project is None or project.passes(rules.of_path(path)))
        ]


def _is_page(place: str | None) -> bool:
    return place is not None and place.isascii() and place.isdecimal() and 0 < int(place[:6]) < 100_000


def join_parts(kind: FileKind, parts: Sequence[FilePart]) -> str:
    """Return the complete text of a file. In PDF files, page numbers separate the pages."""
    if kind == "pdf":
        return beginning("\n\n".join(f"[page {part.page}]\n{part.text}" for part in parts), MOST_TEXT)
    gap = "\n" if kind in ("text", "html") else "\n\n"
    return beginning(gap.join(part.text for part in parts), MOST_TEXT)


def image_content(read: AttachmentRead) -> tuple[str, str] | None:
    """Return the media type and the base64 text of an image, or None if the read file is not an image."""
    if read.image is None:
        return None
    return MEDIA[read.file.path.rpartition(".")[2].lower()], base64.b64encode(read.image).decode()
