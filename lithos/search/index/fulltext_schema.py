"""The fields and documents of the full-text index, and the detection of outdated or damaged files.

A format marker and file checksums show whether the index must be rebuilt from scratch.
"""

from __future__ import annotations

import errno
import json
import shutil
import struct
import zlib
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from tantivy import Document, Schema, SchemaBuilder

from lithos.kernel.databases.private_files import PRIVATE_FOLDER
from lithos.kernel.values.projects import ProjectFilter, project_terms
from lithos.search.index.stemming import prepare_in
from lithos.text.dates import MOST_KEYS, OwnDate
from lithos.text.words.languages import ENGLISH, SAMPLE, language_of
from lithos.text.words.list_filters import tag_keys


@frozen
class Filters:
    """Search filters: a note must have all tags and entities, the author, the path prefix and the project.

    Entities, authors and paths are compared exactly, character by character. A tag matches in every spelling,
    and so do all tags below it (`text.words.matching.has_tag`). Filters never change a score.
    """

    tags: tuple[str, ...] = ()
    author: str | None = None
    path_prefix: str | None = None
    entities: tuple[str, ...] = ()
    project: ProjectFilter | None = None


#: Name of the index format. An index with another name is rebuilt.
FORMAT: Final = "L7"
ANALYZER_NAME: Final = "lithos"
TEXT_FIELDS: Final = ("text", "title", "headings", "body", "entities")
EXACT_FIELDS: Final = ("id", "tag", "entity", "author", "path", "namespace", "dated", "project", "language")


@frozen(kw_only=True)
class FulltextEntry:
    """The indexed fields of a note.

    `serial` is the note's number in the catalogue. `stamp` is an unsigned 63-bit hash of all other fields.
    `headings` has the headings of the body, one per line. `passages` has the title and body in chunks.
    `dates` has the ISO dates of title and body as words. `aliases` has the other names of the note, which
    count like the title. `own` is the date that the note states for itself.
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
    aliases: tuple[str, ...] = ()
    own: OwnDate | None = None
    #: Keys of the projects to which the note belongs.
    projects: tuple[str, ...] = ()
    #: Whether the body has text of its own (`text.own_text`).
    has_text: bool = True

    @cached_property
    def language(self) -> str:
        """Return the language of the note's text, `english` if it is unclear."""
        return language_of(f"{self.title}\n{self.body[:SAMPLE]}")


def make_schema() -> Schema:
    """Return the schema of format `FORMAT`. Only the fast fields can be read back."""
    builder = SchemaBuilder()
    # Signed, because deleting by a term of an unsigned field silently deletes nothing (tantivy-py 0.27).
    builder.add_integer_field("serial", indexed=True, fast=True)
    builder.add_integer_field("stamp", fast=True)
    builder.add_date_field("updated_at", indexed=True, fast=True)
    # `text` combines title, body and entities. The weight of a word is read from this field, where word
    # frequency and note length are meaningful. In titles alone every word is rare and every text is short.
    for name in TEXT_FIELDS:
        builder.add_text_field(name, tokenizer_name=ANALYZER_NAME)
    for name in EXACT_FIELDS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    return builder.build()


def make_document(entry: FulltextEntry, language: str = ENGLISH) -> Document:
    """Return the tantivy document of a note whose words are stemmed in a language."""
    document = Document()
    document.add_integer("serial", entry.serial)
    document.add_integer("stamp", entry.stamp)
    document.add_date("updated_at", entry.updated_at)
    _add_words(document, entry, language)
    for entity in entry.entities:
        document.add_text("entity", entity)
    for tag in tag_keys(entry.tags):
        document.add_text("tag", tag)
    for term in project_terms(entry.projects):
        document.add_text("project", term)
    keys = () if entry.own is None else entry.own.keys
    # Every note gets the same number of keys. The score of a key is then its idf, even if few notes have a
    # date.
    for key in (*keys, *("" for _ in range(MOST_KEYS - len(keys)))):
        document.add_text("dated", key)
    for name in ("id", "author", "path", "namespace"):
        document.add_text(name, getattr(entry, name))
    if language != ENGLISH:
        document.add_text("language", language)
    return document


def _add_words(document: Document, entry: FulltextEntry, language: str) -> None:
    """Add the words of a note, stemmed in a language."""
    for name, text in (("title", entry.title), ("headings", entry.headings), ("body", entry.body)):
        prepared = prepare_in(language, text)
        document.add_text(name, prepared)
        if name != "headings":  # The body already contains the headings.
            document.add_text("text", prepared)
    for alias in entry.aliases:
        prepared = prepare_in(language, alias)
        document.add_text("title", prepared)
        document.add_text("text", prepared)
    if entry.dates:
        document.add_text("text", prepare_in(language, entry.dates))
    for entity in entry.entities:
        prepared = prepare_in(language, entity)
        document.add_text("entities", prepared)
        document.add_text("text", prepared)


MARKER: Final = ".schema_version"
_SEGMENT_KINDS: Final = ("idx", "pos", "term", "store", "fast", "fieldnorm")
_MAGIC: Final = 1337
_TAIL: Final = struct.Struct("<II")
_BLOCK: Final = 1 << 20


def index_format(language: str | None) -> str:
    """Return the name of the format of an index, whose notes are stemmed in `language` or each in its own."""
    return FORMAT if language is None else f"{FORMAT} {language}"


def is_current(name: str | None) -> bool:
    """Return whether an index with this format name can be read."""
    return name is not None and name.partition(" ")[0] == FORMAT


def read_marker(directory: Path) -> str | None:
    """Return the name of the index format, or `None` if no marker is readable."""
    try:
        return (directory / MARKER).read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, UnicodeDecodeError):
        return None


def write_marker(directory: Path, name: str) -> None:
    """Write the format marker.

    Writing the marker is the last step of index creation. A partial index has no marker, so it is never used.
    """
    (directory / MARKER).write_text(name + "\n", encoding="utf-8")


def wipe(directory: Path) -> None:
    """Delete the index and leave an empty directory. The index is rebuilt from the notes."""
    if directory.is_dir() and not directory.is_symlink():
        remove_index(directory)
    elif directory.is_dir():  # A symbolic link to another directory is kept as a link.
        for child in directory.iterdir():
            shutil.rmtree(child) if child.is_dir() else child.unlink()
    else:
        directory.unlink(missing_ok=True)
    directory.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)


def remove_index(directory: Path) -> None:
    """Delete the folder of an index. Raises `OSError` if that fails.

    A tantivy thread may still watch an index that was just closed, and create its lock file during the
    deletion.
    """
    for _ in range(9):
        try:
            shutil.rmtree(directory)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
        else:
            return
    shutil.rmtree(directory)


def find_damage(directory: Path) -> str | None:
    """Return which index file is damaged and how. Return `None` if all files exist and are unchanged.

    Tantivy writes a CRC-32 at the end of each file but only checks it on request, which its Python binding
    does not offer. Searching a damaged file can panic. Checking 20 MB takes about 10 ms. Files that belong to
    no committed segment (left by a crash) are ignored.
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
    """Check one file.

    The footer consists of JSON with the CRC-32 of the data, the footer length and a magic number.
    """
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
    return None if f'"crc":{checksum}'.encode() in footer else "does not match its checksum"
