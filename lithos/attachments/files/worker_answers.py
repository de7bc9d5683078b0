"""Answers of the process that reads files: the text of a file, and images of its pages."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from types import ModuleType
from typing import TYPE_CHECKING, Final

from lithos.attachments.files.worker_protocol import (
    Digest,
    End,
    PageBegun,
    Picture,
    ReadingRequest,
    WorkerAnswer,
)
from lithos.attachments.model.kinds import LARGEST_PDF, MOST_PARTS, MOST_TEXT, largest
from lithos.attachments.model.parts import FilePart, NotExtractable, clean
from lithos.attachments.model.reading import read_parts

if TYPE_CHECKING:
    from lithos.attachments.files.pdf import Pdf

INSTALL: Final = "PDF files need a library: pip install 'lithos-server[pdf]'"
_PIECE: Final = 1 << 20


class Missing(Exception):
    """Error: the library is not installed or does not work on this system."""


class FileAnswering:
    """Answers requests about one open file at a time, using at most `memory` bytes."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._library: ModuleType | None = None

    def answer(self, request: ReadingRequest, file: int) -> Iterator[WorkerAnswer]:
        """Yield the parts of the answer. The last one is the end message."""
        try:
            if request.page is None:
                yield from self._extract(request, file)
            else:
                yield from self._draw(request.page, request.width, file)
        except Missing as missing:
            yield End("missing", str(missing))
        except NotExtractable as failure:
            yield End("failed", str(failure))

    def _extract(self, request: ReadingRequest, file: int) -> Iterator[WorkerAnswer]:
        size, most = os.fstat(file).st_size, largest(request.kind)
        if size > most:
            raise NotExtractable(f"it has {size:,} bytes, and the limit is {most >> 20} MB")
        data = _bytes(file, size) if request.kind != "pdf" else b""
        digest = sha256(data).hexdigest() if request.kind != "pdf" else _digest(file, size)
        yield Digest(digest)
        if digest == request.known:
            yield End("unchanged")
        elif request.kind == "pdf":
            with self._opened(file, size, fonts=False) as pdf:
                yield from _bounded(_pages(pdf))
        else:
            yield from _bounded(read_parts(request.kind, request.name, data))

    def _draw(self, page: int, width: int, file: int) -> Iterator[WorkerAnswer]:
        size = os.fstat(file).st_size
        if size > LARGEST_PDF:
            raise NotExtractable(f"the file has {size:,} bytes, which is too large")
        with self._opened(file, size, fonts=True) as pdf:
            yield Picture(pdf.draw(page - 1, width))
        yield End("whole")

    @contextmanager
    def _opened(self, file: int, size: int, *, fonts: bool) -> Iterator[Pdf]:
        library = self._load(fonts=fonts)
        limit_memory(self._memory, size)
        pdf: Pdf = library.Pdf(file, size)
        try:
            yield pdf
        finally:
            pdf.close()
            limit_memory(self._memory)

    def _load(self, *, fonts: bool) -> ModuleType:
        """Return the module that uses the library. The first request decides which fonts are loaded."""
        if self._library is None:
            try:
                from lithos.attachments.files import pdf  # noqa: PLC0415 - many starts do not need it
            except (ImportError, OSError) as failure:
                is_absent = isinstance(failure, ModuleNotFoundError)
                raise Missing(
                    INSTALL if is_absent else f"the PDF library cannot be loaded: {failure}"
                ) from None
            pdf.start_library(fonts=fonts)
            self._library = pdf
        return self._library


def limit_memory(memory: int, mapped: int = 0) -> None:
    """Limit the memory in bytes. `mapped` bytes of a file need address space but no memory."""
    limit(resource.RLIMIT_AS, memory + mapped, memory + LARGEST_PDF)


def limit(what: int, soft: int, hard: int) -> None:
    """Set a resource limit. It has no effect on systems without this limit, or if a lower limit is set."""
    try:
        resource.setrlimit(what, (soft, hard))
    except (OSError, ValueError):
        return


def _pages(pdf: Pdf) -> Iterator[FilePart | PageBegun]:
    if not pdf.pages:
        raise NotExtractable("it has no pages")
    damaged = list[int]()
    for number in range(1, min(pdf.pages, MOST_PARTS) + 1):
        yield PageBegun(number)
        text = pdf.text(number - 1)
        if text is None:
            damaged.append(number)
        elif text := clean(text):
            yield FilePart(str(number), text, number)
    if pdf.pages > MOST_PARTS:
        raise NotExtractable(f"only the first {MOST_PARTS:,} of {pdf.pages:,} pages")
    if damaged:
        first = f"page {damaged[0]}"
        raise NotExtractable(
            f"{first} is damaged"
            if len(damaged) == 1
            else f"{len(damaged)} pages are damaged, the first is {first}"
        )


def _bounded(parts: Iterator[FilePart] | Iterator[FilePart | PageBegun]) -> Iterator[WorkerAnswer]:
    """Yield the parts in order up to the limit. If parts are left out, yield the reason."""
    count, room = 0, MOST_TEXT
    try:
        for part in parts:
            if isinstance(part, PageBegun):
                yield part
                continue
            if count == MOST_PARTS:
                raise NotExtractable(f"only its first {MOST_PARTS:,} places")
            text = part.text.encode()
            count += 1
            if len(text) > room:
                yield FilePart(part.place, text[:room].decode("utf-8", "ignore"), part.page)
                raise NotExtractable(f"more than {MOST_TEXT >> 20} MB of text")
            room -= len(text)
            yield part
    except NotExtractable as failure:
        yield End("cut" if count else "failed", str(failure))
    else:
        yield End("whole")


def _bytes(file: int, size: int) -> bytes:
    return b"".join(_pieces(file, size))


def _digest(file: int, size: int) -> str:
    # Read the file instead of mapping it, because mapped pages would count as memory of the process.
    digest = sha256()
    for piece in _pieces(file, size):
        digest.update(piece)
    return digest.hexdigest()


def _pieces(file: int, size: int) -> Iterator[bytes]:
    """Yield up to `size` bytes of a file, in pieces."""
    offset = 0
    try:
        while offset < size and (piece := os.pread(file, min(_PIECE, size - offset), offset)):
            offset += len(piece)
            yield piece
    except OSError as failure:
        raise NotExtractable(f"it cannot be read: {failure.strerror}") from None
