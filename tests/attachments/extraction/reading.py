"""Helpers that let an extractor read files from bytes or from sparse files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from tempfile import TemporaryFile

from attrs import frozen

from lithos.attachments.extraction.extractor import Extractor, FileExtraction
from lithos.attachments.model.kinds import FileKind
from lithos.attachments.model.parts import FilePart


@frozen
class Read:
    """Result of reading a file."""

    told: FileExtraction
    parts: Sequence[FilePart]

    @property
    def texts(self) -> list[str]:
        return [part.text for part in self.parts]


@asynccontextmanager
async def running(**limits: float) -> AsyncIterator[Extractor]:
    extractor = Extractor(**limits)  # type: ignore[arg-type]
    try:
        yield extractor
    finally:
        await extractor.close()


async def read(
    extractor: Extractor, data: bytes | int, kind: FileKind = "pdf", name: str = "a", known: str | None = None
) -> Read:
    """Read a file that contains these bytes, or this number of zero bytes."""
    parts: list[FilePart] = []

    async def take(batch: Sequence[FilePart]) -> None:
        parts.extend(batch)

    with TemporaryFile() as file:
        if isinstance(data, int):
            file.truncate(data)
        else:
            file.write(data)
        file.flush()
        told = await extractor.extract(file.fileno(), kind, name, known, take)
    assert told.parts == len(parts)
    return Read(told, parts)


async def draw(extractor: Extractor, data: bytes, page: int, width: int) -> bytes:
    with TemporaryFile() as file:
        file.write(data)
        file.flush()
        return await extractor.draw(file.fileno(), page, width)
