"""Hostile files, which may end only the process that reads them (behaviour 291)."""

from __future__ import annotations

import pytest

from lithos.attachments.extraction.extractor import DrawingFailed
from lithos.attachments.model.kinds import FileKind
from tests.attachments.extraction.hostile_files import OTHERS, PDFS, PICTURES, Make
from tests.attachments.extraction.pdf_files import pdf
from tests.attachments.extraction.reading import Read, draw, read, running

pytestmark = pytest.mark.slow

#: Expected states of some files. Other files may end in any state, because a slow machine may reach the time
#: or memory limit.
TOLD = {
    "empty": "failed: it is empty",
    "NULs": "failed: it is not a PDF file, or it is damaged",
    "an image": "failed: it is not a PDF file, or it is damaged",
    "a page tree of kids of kids": "failed: page 1 took longer than 1 s",
    "a password": "failed: it is encrypted and needs a password",
    "10,000 pages": "cut: only the first 2,000 of 10,000 pages",
    "4 GB of holes": "failed: it has 4,294,967,296 bytes, and the limit is 256 MB",
    "it wants to act": "whole: ",
    "outlines in a circle": "whole: ",
    "a count that lies": "whole: ",
    "a nest": "failed: the canvas is nested too deeply",
    "wrong types": "whole: ",
    "bad UTF-8": "failed: the canvas is not UTF-8 text",
    "a bomb": "cut: its compressed drawing has more than 8 MB",
    "no Base64": "cut: its compressed drawing is damaged",
    "nothing": "failed: it has binary data, not text",
    "one line": "cut: only its first 2,000 places",
    "a comment without end": "whole: ",
}


async def check(kind: FileKind, name: str, make: Make) -> Read:
    async with running(page_seconds=1.0, opening_seconds=3.0, file_seconds=15.0) as extractor:
        got = await read(extractor, make(), kind, "a.excalidraw.md" if kind == "drawing" else "a")
        assert got.told.state in ("whole", "cut", "failed")
        assert bool(got.told.reason) == (got.told.state != "whole")
        assert got.told.state == "whole" or bool(got.parts) == (got.told.state == "cut")
        assert got.told.reason != "the file reader sent an invalid answer"
        if name in TOLD:
            assert f"{got.told.state}: {got.told.reason}" == TOLD[name]
        assert (await read(extractor, pdf("good"))).texts == ["good"]
    return got


@pytest.mark.parametrize("name", PDFS)
async def test_hostile_pdf_ends_within_limits_and_next_file_is_read(name: str):
    """behaviour 291"""
    await check("pdf", name, PDFS[name])


@pytest.mark.parametrize(("kind", "name"), OTHERS, ids=[f"{kind}-{name}" for kind, name in OTHERS])
async def test_other_hostile_files_end_within_limits(kind: FileKind, name: str):
    """behaviour 291"""
    await check(kind, name, OTHERS[kind, name])


async def test_pdf_cut_at_any_byte_ends_within_its_limits():
    """behaviour 291"""
    data = pdf("one", "two", "three")
    async with running() as extractor:
        for end in range(0, len(data), 17):
            assert (await read(extractor, data[:end])).told.state in ("whole", "cut", "failed")
        assert (await read(extractor, data)).texts == ["one", "two", "three"]


@pytest.mark.parametrize("name", PICTURES)
async def test_next_page_is_drawn_after_a_hostile_page(name: str):
    """behaviour 291"""
    async with running(opening_seconds=1.0) as extractor:
        try:
            picture = await draw(extractor, PICTURES[name](), 1, 1_600)
        except DrawingFailed:
            picture = b""
        assert len(picture) < 32 << 20
        assert (await draw(extractor, pdf("good"), 1, 100)).startswith(b"\x89PNG")
