"""Attachment kinds, and their reading limits (docs/spec/attachments.md)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Literal

from lithos.text.words.analysis import fold, words

FileKind = Literal["pdf", "canvas", "drawing", "text", "html", "image"]

#: Media types of images by suffix, without the dot.
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

#: Maximum text of one file, in bytes of UTF-8.
MOST_TEXT: Final = 4 * 1024 * 1024
#: Maximum number of parts of one file, and of PDF pages that are read.
MOST_PARTS: Final = 2_000
#: Maximum size of a PDF file, and of any other file, in bytes.
LARGEST_PDF: Final = 256 * 1024 * 1024
LARGEST: Final = 32 * 1024 * 1024
#: Maximum processor seconds for a file, for one page, and for opening a file up to its first page.
FILE_SECONDS: Final = 30.0
PAGE_SECONDS: Final = 2.0
OPENING_SECONDS: Final = 10.0
#: Maximum memory of the process that reads files, in bytes.
MOST_MEMORY: Final = 512 * 1024 * 1024


def kind_of(path: str) -> FileKind | None:
    """Return the kind of a file by its suffix, in any case, or None for a file that is not an attachment."""
    name = path.rpartition("/")[2].lower()
    if name.endswith(".excalidraw.md"):
        return "drawing"
    stem, _, suffix = name.rpartition(".")
    return _KINDS.get(suffix) if stem else None


#: Words of queries that ask for an image, as `fold` spells them. They may also be name suffixes.
_SAID: Final = """
    image images picture pictures photo photos photograph screenshot screenshots illustration figure sketch
    sketches drawing diagram diagrams bild bilder foto fotos bildschirmfoto skizze zeichnung dessin imagen
    imagenes immagine afbeelding
"""
_IMAGE_WORDS: Final = frozenset((*MEDIA, *_SAID.split()))
_LONGEST_ASKED: Final = 1_000


def asks_for_image(query: str) -> bool:
    """Return whether a question asks for an image."""
    return any(word in _IMAGE_WORDS for _, word in words(fold(query[:_LONGEST_ASKED])))


def attachment_id(path: str) -> str:
    """Return `att_` and 12 hexadecimal digits that change only with the path."""
    return f"att_{sha256(path.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def largest(kind: FileKind) -> int:
    """Return the maximum size of a file of this kind, in bytes."""
    return LARGEST_PDF if kind == "pdf" else LARGEST
