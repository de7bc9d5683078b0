"""The fields of the full-text index, how text becomes tokens, and how a note becomes a tantivy document."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from typing import Final

from attrs import frozen
from tantivy import Document, Filter, Schema, SchemaBuilder, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from lithos.core.text import index_text

#: Name of the index format; another one means: rebuild.
FORMAT: Final = "L1"
ANALYZER_NAME: Final = "lithos"
TEXT_FIELDS: Final = ("text", "title", "headings", "body", "entities")
EXACT_FIELDS: Final = ("id", "tag", "entity", "author", "path", "namespace")

#: Tantivy drops tokens over 65,530 bytes; longer words are cut, in notes and in queries alike.
LONGEST_WORD: Final = 200
_LONG_WORD: Final = re.compile(f"[^ ]{{{LONGEST_WORD}}}(?=[^ ])")


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
    spaced = index_text(text).translate(_WORDS_ALONE)
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
