"""PDF files with PDFium: text and images of pages. Only the process that reads files uses this module.

The module uses the raw bindings of pypdfium2 to avoid the imports of its helpers and to choose the font
folders. PDFium never executes code of a document: form support is not set up, and PDFium is built without
JavaScript.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import struct
import zlib
from typing import Final

import pypdfium2_raw as pdfium

from lithos.attachments.model.kinds import MOST_TEXT
from lithos.attachments.model.parts import NotExtractable

#: Maximum width of a page image in pixels.
MOST_WIDTH: Final = 1_600
MOST_HEIGHT: Final = 4_000
#: Minimum and maximum length of a page's sides in points. With other lengths, the image would be a single
#: line.
_SHORTEST, _LONGEST = 1.0, 1_000_000.0
#: Draw annotations, and write the bytes in the order red, green, blue.
_FLAGS: Final = pdfium.FPDF_ANNOT | pdfium.FPDF_REVERSE_BYTE_ORDER
_REASONS: Final = {
    pdfium.FPDF_ERR_PASSWORD: "it is encrypted and needs a password",
    pdfium.FPDF_ERR_SECURITY: "it is encrypted with an unsupported method",
    pdfium.FPDF_ERR_FORMAT: "it is not a PDF file, or it is damaged",
}


def start_library(*, fonts: bool) -> None:
    """Initialise PDFium. Call this once.

    Reading text needs no fonts. Drawing pages without embedded fonts needs the system's fonts.
    """
    nowhere = (ctypes.c_char_p * 1)(None)
    field = dict(pdfium.FPDF_LIBRARY_CONFIG._fields_)["m_pUserFontPaths"]
    config = pdfium.FPDF_LIBRARY_CONFIG(
        version=2, m_pUserFontPaths=None if fonts else ctypes.cast(nowhere, field)
    )
    pdfium.FPDF_InitLibraryWithConfig(config)


class Pdf:
    """An open PDF document. Raises `NotExtractable`."""

    def __init__(self, descriptor: int, size: int) -> None:
        if not size:
            raise NotExtractable("it is empty")
        # Only a writable, private memory map exposes its address. The code never writes to the map.
        try:
            self._data = mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
        except (OSError, ValueError):  # the file has been shortened, or its file system does not support maps
            raise NotExtractable("it cannot be mapped into memory") from None
        first = ctypes.c_char.from_buffer(self._data)
        self._document = pdfium.FPDF_LoadMemDocument64(ctypes.byref(first), size, None)
        # The address stays valid. A remaining reference to the buffer would prevent closing the map.
        del first
        if not self._document:
            self._data.close()
            raise NotExtractable(_REASONS.get(pdfium.FPDF_GetLastError(), "it is damaged"))
        self.pages: int = pdfium.FPDF_GetPageCount(self._document)

    def close(self) -> None:
        """Free the memory of the document."""
        pdfium.FPDF_CloseDocument(self._document)
        self._data.close()

    def text(self, page: int) -> str | None:
        """Return the text of a page (from 0), or None if the page is damaged."""
        opened = pdfium.FPDF_LoadPage(self._document, page)
        if not opened:
            return None
        try:
            return self._text(opened)
        finally:
            pdfium.FPDF_ClosePage(opened)

    def _text(self, page: object) -> str | None:
        told = pdfium.FPDFText_LoadPage(page)
        if not told:
            return None
        try:
            count = min(pdfium.FPDFText_CountChars(told), MOST_TEXT)
            if count <= 0:
                return ""
            units = (ctypes.c_ushort * (count + 1))()
            written = pdfium.FPDFText_GetText(told, 0, count, units)
            return bytes(units)[: 2 * max(0, written - 1)].decode("utf-16-le", "replace")
        finally:
            pdfium.FPDFText_ClosePage(told)

    def draw(self, page: int, width: int) -> bytes:
        """Return a page (from 0) as PNG, narrower than `width` if it is too high. Raises `NotExtractable`."""
        is_there = 0 <= page < self.pages
        opened = pdfium.FPDF_LoadPage(self._document, page) if is_there else None
        if not opened:
            raise NotExtractable("the page is damaged" if is_there else "the page does not exist")
        try:
            return self._draw(opened, *_size(opened, width))
        finally:
            pdfium.FPDF_ClosePage(opened)

    def _draw(self, page: object, width: int, height: int) -> bytes:
        stride = 3 * width
        pixels = bytearray(b"\xff" * (stride * height))
        buffer = (ctypes.c_char * len(pixels)).from_buffer(pixels)
        bitmap = pdfium.FPDFBitmap_CreateEx(width, height, pdfium.FPDFBitmap_BGR, buffer, stride)
        if not bitmap:
            raise NotExtractable("the page is too large")
        try:
            pdfium.FPDF_RenderPageBitmap(bitmap, page, 0, 0, width, height, 0, _FLAGS)
        finally:
            pdfium.FPDFBitmap_Destroy(bitmap)
        return png(width, height, bytes(pixels))


def _size(page: object, width: int) -> tuple[int, int]:
    """Return the width and height of a page image in pixels."""
    sides = (pdfium.FPDF_GetPageWidthF(page), pdfium.FPDF_GetPageHeightF(page))
    if not all(math.isfinite(side) for side in sides):
        raise NotExtractable("the page has no size")
    across, down = (min(max(side, _SHORTEST), _LONGEST) for side in sides)
    scale = min(min(max(width, 1), MOST_WIDTH) / across, MOST_HEIGHT / down)
    return max(1, round(across * scale)), min(MOST_HEIGHT, max(1, round(down * scale)))


def png(width: int, height: int, pixels: bytes) -> bytes:
    """Return a PNG file from rows of red, green and blue bytes."""
    stride = 3 * width
    packer = zlib.compressobj(6)
    rows = [packer.compress(b"\0" + pixels[row * stride : (row + 1) * stride]) for row in range(height)]
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
            _chunk(b"IDAT", b"".join((*rows, packer.flush()))),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
