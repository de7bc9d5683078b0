"""The fields of the full-text index, how text becomes tokens, and how a note becomes a tantivy document."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from attrs import frozen
from tantivy import Document, Filter, Schema, SchemaBuilder, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from lithos.core.text import index_text

#: Name of the index format; another one means: rebuild.
FORMAT: Final = "L1"
ANALYZER_NAME: Final = "lithos"
TEXT_FIELDS: Final = ("title", "headings", "body", "entities")
EXACT_FIELDS: Final = ("id", "tag", "entity", "author", "path", "namespace")

#: Tantivy drops tokens over 65,530 bytes; longer words are cut, in notes and in queries alike.
_LONG_WORD: Final = re.compile(r"[^\W_]{200}(?=[^\W_])")


@frozen(kw_only=True)
class FulltextEntry:
    """What is indexed of one note.

    `serial` is its small number in the catalogue, `stamp` an unsigned 63-bit hash of everything else here;
    `headings` holds the headings of the body, one a line.
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


def make_schema() -> Schema:
    """Return the schema of format `FORMAT`; nothing but the fast fields can be read back."""
    builder = SchemaBuilder()
    # Signed: deleting by a term of an unsigned field silently deletes nothing (tantivy-py 0.27).
    builder.add_integer_field("serial", indexed=True, fast=True)
    builder.add_integer_field("stamp", fast=True)
    builder.add_date_field("updated_at", indexed=True, fast=True)
    for name in TEXT_FIELDS:
        builder.add_text_field(name, tokenizer_name=ANALYZER_NAME)
    for name in EXACT_FIELDS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    return builder.build()


def make_analyzer() -> TextAnalyzer:
    """Return the tokeniser behind `prepare_text`: words of letters, numbers and marks, stemmed as English."""
    words = TextAnalyzerBuilder(Tokenizer.regex(r"[\p{L}\p{N}\p{M}]+"))
    return words.filter(Filter.stemmer("english")).build()


def prepare_text(text: str) -> str:
    """Return `text` as the tokeniser is given it: folded, unsegmented scripts interleaved, long words cut."""
    return _LONG_WORD.sub(r"\g<0> ", index_text(text))


def make_document(entry: FulltextEntry) -> Document:
    """Return the tantivy document of a note."""
    document = Document()
    document.add_integer("serial", entry.serial)
    document.add_integer("stamp", entry.stamp)
    document.add_date("updated_at", entry.updated_at)
    for name, text in (("title", entry.title), ("headings", entry.headings), ("body", entry.body)):
        document.add_text(name, prepare_text(text))
    for entity in entry.entities:
        document.add_text("entities", prepare_text(entity))
        document.add_text("entity", entity)
    for tag in entry.tags:
        document.add_text("tag", tag)
    for name in ("id", "author", "path", "namespace"):
        document.add_text(name, getattr(entry, name))
    return document
