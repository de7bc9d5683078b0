"""The full-text index: its fields, tokens and documents, and how outdated or damaged files are found.

A format marker and the checksums of the files tell whether the index has to be rebuilt from scratch.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import unicodedata
import zlib
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from tantivy import Document, Filter, Schema, SchemaBuilder, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from lithos.core.text.analysis import index_text
from lithos.core.text.pieces import PIECE, cut_at_spaces
from lithos.stores import PRIVATE_FOLDER

#: Name of the index format; another one means: rebuild.
FORMAT: Final = "L2"
ANALYZER_NAME: Final = "lithos"
TEXT_FIELDS: Final = ("text", "title", "headings", "body", "entities")
EXACT_FIELDS: Final = ("id", "tag", "entity", "author", "path", "namespace")

#: Tantivy drops tokens over 65,530 bytes; longer words are cut, in notes and in queries alike.
LONGEST_WORD: Final = 200
_LONG_WORD: Final = re.compile(f"[^ ]{{{LONGEST_WORD}}}(?=[^ ])")


@frozen(kw_only=True)
class FulltextEntry:
    """The indexed fields of one note.

    `serial` is its small number in the catalogue, `stamp` an unsigned 63-bit hash of everything else here;
    `headings` holds the headings of the body, one a line, `passages` title and body in chunks, `dates` the
    ISO dates of both in words.
    """

    serial: int
    stamp: int
    id: str
    title: str
    headings: str
    body: str
    entities: tuple[str, ...]
    tags: tuple[str, ...]
    author: str
    path: str
    namespace: str
    updated_at: datetime
    passages: tuple[str, ...] = ()
    dates: str = ""


def make_schema() -> Schema:
    """Return the schema of format `FORMAT`; nothing but the fast fields can be read back."""
    builder = SchemaBuilder()
    # Signed: deleting by a term of an unsigned field silently deletes nothing (tantivy-py 0.27).
    builder.add_integer_field("serial", indexed=True, fast=True)
    builder.add_integer_field("stamp", fast=True)
    builder.add_date_field("updated_at", indexed=True, fast=True)
    # `text` is title, body and entities together: what a word is worth is asked there, where its frequency
    # and the length of a note mean something. In titles alone every word is rare and every text short.
    for name in TEXT_FIELDS:
        builder.add_text_field(name, tokenizer_name=ANALYZER_NAME)
    for name in EXACT_FIELDS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    return builder.build()


def make_analyzer() -> TextAnalyzer:
    """Return the tokeniser behind `prepare_text`: words between spaces, stemmed as English."""
    return TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stemmer("english")).build()


class _WordsAlone(dict[int, int]):
    """For `str.translate`: letters, numbers and marks stay, anything else becomes a space.

    What this Python's Unicode does not know yet may be a letter and stays too. Tantivy could split words
    by a regular expression, but that takes longer than all other indexing.
    """

    def __missing__(self, code: int) -> int:
        character = chr(code)
        category = unicodedata.category(character)
        result = code if character.isalnum() or category[0] == "M" or category == "Cn" else 32
        if code < _REMEMBERED:
            self[code] = result
        return result


#: The code points of alphabets; remembering all of Unicode would take a hundred megabytes.
_REMEMBERED: Final = 0x3000
_WORDS_ALONE: Final = _WordsAlone()


def prepare_text(text: str) -> str:
    """Return `text` as the tokeniser is given it: folded, in words of at most 200 characters between spaces.

    Unsegmented scripts are interleaved.
    """
    indexed = index_text(text)
    pieces = (indexed[begin : begin + PIECE] for begin in range(0, len(indexed), PIECE))
    spaced = "".join([piece.translate(_WORDS_ALONE) for piece in pieces])
    return "".join([_cut_words(piece) for piece in cut_at_spaces(spaced)])


def _cut_words(spaced: str) -> str:
    if max(map(len, spaced.split(" "))) <= LONGEST_WORD:
        return spaced
    return _LONG_WORD.sub(r"\g<0> ", spaced)


def make_document(entry: FulltextEntry) -> Document:
    """Return the tantivy document of a note."""
    document = Document()
    document.add_integer("serial", entry.serial)
    document.add_integer("stamp", entry.stamp)
    document.add_date("updated_at", entry.updated_at)
    for name, text in (("title", entry.title), ("headings", entry.headings), ("body", entry.body)):
        prepared = prepare_text(text)
        document.add_text(name, prepared)
        if name != "headings":  # the body has them too
            document.add_text("text", prepared)
    if entry.dates:
        document.add_text("text", prepare_text(entry.dates))
    for entity in entry.entities:
        prepared = prepare_text(entity)
        document.add_text("entities", prepared)
        document.add_text("text", prepared)
        document.add_text("entity", entity)
    for tag in entry.tags:
        document.add_text("tag", tag)
    for name in ("id", "author", "path", "namespace"):
        document.add_text(name, getattr(entry, name))
    return document


MARKER: Final = ".schema_version"
_SEGMENT_KINDS: Final = ("idx", "pos", "term", "store", "fast", "fieldnorm")
_MAGIC: Final = 1337
_TAIL: Final = struct.Struct("<II")
_BLOCK: Final = 1 << 20


def read_marker(directory: Path) -> str | None:
    """Return the name of the index format, `None` when there is no readable marker."""
    try:
        return (directory / MARKER).read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, UnicodeDecodeError):
        return None


def write_marker(directory: Path, name: str) -> None:
    """Write the format marker; the last step of making an index, so that half an index has none."""
    (directory / MARKER).write_text(name + "\n", encoding="utf-8")


def wipe(directory: Path) -> None:
    """Remove the index and leave an empty directory. Notes rebuild it."""
    if directory.is_dir() and not directory.is_symlink():
        shutil.rmtree(directory)
    elif directory.is_dir():  # A link to a directory elsewhere stays a link.
        for child in directory.iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()
    else:
        directory.unlink(missing_ok=True)
    directory.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)


def find_damage(directory: Path) -> str | None:
    """Return which file of the index is damaged and how, `None` when all are there and as written.

    Tantivy writes a CRC-32 at the end of each file but compares it only on request, which its Python
    binding does not offer; searching a damaged file can panic. 20 MB take about 10 ms. Files that no
    committed segment has (a crash leaves such) do not matter.
    """
    try:
        names = _list_segment_files(json.loads((directory / "meta.json").read_bytes()))
    except (FileNotFoundError, IsADirectoryError, ValueError, KeyError, TypeError) as error:
        return f"meta.json cannot be read ({type(error).__name__}: {error})"
    for name in names:
        path = directory / name
        problem = _check_footer(path) if path.is_file() else "is missing"
        if problem:
            return f"{name} {problem}"
    return None


def _list_segment_files(meta: Any) -> list[str]:
    names: list[str] = []
    for segment in meta["segments"]:
        stem = str(segment["segment_id"]).replace("-", "")
        names += [f"{stem}.{kind}" for kind in _SEGMENT_KINDS]
        if segment["deletes"] is not None:
            names.append(f"{stem}.{segment['deletes']['opstamp']}.del")
    return names


def _check_footer(path: Path) -> str | None:
    """Check one file: data, JSON footer with the CRC-32 of the data, length of the footer, magic number."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - _TAIL.size))
        tail = stream.read(_TAIL.size)
        if len(tail) < _TAIL.size:
            return "is too short"
        length, magic = _TAIL.unpack(tail)
        data_size = size - _TAIL.size - length
        if magic != _MAGIC or data_size < 0:
            return "has no footer"
        stream.seek(data_size)
        footer = stream.read(length)
        stream.seek(0)
        checksum, rest = 0, data_size
        while rest and (block := stream.read(min(rest, _BLOCK))):
            checksum, rest = zlib.crc32(block, checksum), rest - len(block)
    return None if f'"crc":{checksum}'.encode() in footer else "has another checksum than its data"
