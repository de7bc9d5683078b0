"""Kinds of attachments, and limits for reading them (docs/spec/attachments.md)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Literal

from lithos.text.words.analysis import fold, words

FileKind = Literal["pdf", "canvas", "drawing", "text", "html", "image"]

#: Media types of images by file suffix, without the dot.
MEDIA: Final[Mapping[str, str]] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
}
_KINDS: Final[Mapping[str, FileKind]] = {
    "pdf": "pdf",
    "canvas": "canvas",
    "excalidraw": "drawing",
    "txt": "text",
    "csv": "text",
    "org": "text",
    "rst": "text",
    "html": "html",
    "htm": "html",
    **dict.fromkeys(MEDIA, "image"),
}

#: Maximum size of one file's text, in bytes of UTF-8.
MOST_TEXT: Final = 4 * 1024 * 1024
#: Maximum number of parts per file. It is also the maximum number of PDF pages to read.
MOST_PARTS: Final = 2_000
#: Maximum size in bytes: of a PDF file, and of a file of another kind.
LARGEST_PDF: Final = 256 * 1024 * 1024
LARGEST: Final = 32 * 1024 * 1024
#: Maximum processor seconds: for a file, for one page, and for opening a file until its first page.
FILE_SECONDS: Final = 30.0
PAGE_SECONDS: Final = 2.0
OPENING_SECONDS: Final = 10.0
#: Maximum memory, in bytes, of the process that reads files.
MOST_MEMORY: Final = 512 * 1024 * 1024


def kind_of(path: str) -> FileKind | None:
    """Return the kind of a file by its suffix (ignoring case), or None if it is not an attachment."""
    name = path.rpartition("/")[2].lower()
    if name.endswith(".excalidraw.md"):
        return "drawing"
    stem, _, suffix = name.rpartition(".")
    return _KINDS.get(suffix) if stem else None


#: Query words that ask for an image, spelled as `fold` returns them. Suffixes of image files have the same
#: effect.
_SAID: Final = """
    image images picture pictures photo photos photograph screenshot screenshots illustration figure sketch
    sketches drawing diagram diagrams bild bilder foto fotos bildschirmfoto skizze zeichnung dessin imagen
    imagenes immagine afbeelding
"""
_IMAGE_WORDS: Final = frozenset((*MEDIA, *_SAID.split()))
_LONGEST_ASKED: Final = 1_000


def asks_for_image(query: str) -> bool:
    """Return whether a query asks for an image."""
    return any(word in _IMAGE_WORDS for _, word in words(fold(query[:_LONGEST_ASKED])))


def attachment_id(path: str) -> str:
    """Return `att_` and 12 hexadecimal digits that depend only on the path."""
    return f"att_{sha256(path.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def largest(kind: FileKind) -> int:
    """Return the maximum size of a file of this kind in bytes."""
    return LARGEST_PDF if kind == "pdf" else LARGEST
