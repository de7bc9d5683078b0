"""The fields, tokens and documents of the full-text index, and the detection of outdated or damaged files.

A format marker and file checksums show whether the index must be rebuilt from scratch. Query trees are
translated into tantivy queries with exactly the same tokens as the index.
"""

from __future__ import annotations

import errno
import json
import re
import shutil
import struct
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

from attrs import field, frozen
from tantivy import (
    Document,
    Filter,
    Query,
    Schema,
    SchemaBuilder,
    TextAnalyzer,
    TextAnalyzerBuilder,
    Tokenizer,
)
from tantivy import Occur as TantivyOccur

from lithos.kernel.databases.private_files import PRIVATE_FOLDER
from lithos.kernel.values.projects import ProjectFilter, project_terms
from lithos.text.dates import MOST_KEYS, OwnDate, time_alone
from lithos.text.pieces import PIECE, cut_at_spaces
from lithos.text.query import Beginning, Boolean, Boosted, Dated, Node, Occur, Phrase, Word
from lithos.text.words.analysis import FUNCTION_WORDS, bigrams, fold, index_text, words
from lithos.text.words.list_filters import tag_key, tag_keys

#: Shares of the BM25 scores in the title field and in the headings field. They are added to the score of the
#: whole text. Short fields score high: from about 0.4 on, chance matches in titles push answers down
#: (figures: `bench/quality.md`; all values from 0.1 to 0.3 are equally good).
TITLE_BOOST: Final = 0.2
HEADINGS_BOOST: Final = 0.1
#: Factor by which the score of a function word such as `how` or `the` is multiplied. BM25 gives frequent
#: words low scores, but these are still too high in a small vault or a long question. All values from 0.1 to
#: 0.5 are equally good.
FUNCTION_WORD_SHARE: Final = 0.3
#: Factor for the BM25 score of a note's own date, if the date is within the requested time.
DATED_BOOST: Final = 1.5
#: Fields in which a query word without a field is searched, with the weights of the fields.
_EVERYWHERE: Final = (("text", 1.0), ("title", TITLE_BOOST), ("headings", HEADINGS_BOOST))
_OCCUR: Final = {
    Occur.SHOULD: TantivyOccur.Should,
    Occur.MUST: TantivyOccur.Must,
    Occur.MUST_NOT: TantivyOccur.MustNot,
}
#: A clause of a tantivy query.
_Part: TypeAlias = tuple[TantivyOccur, Query]


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


@frozen
class QueryTranslator:
    """A translator of query trees for one index.

    The translator must use the same analyzer as the text fields of the index.
    """

    schema: Schema
    analyzer: TextAnalyzer
    #: Return the terms that contain a word and its token, each with its factor for the score.
    holding: Callable[[str, str], Sequence[tuple[str, float]]] = field(
        default=lambda _word, _token: (), kw_only=True
    )

    def translate(self, node: Node, filters: Filters) -> Query | None:
        """Return the tantivy query for `node` within `filters`, or `None` if nothing can match."""
        query = self._node(node, Occur.SHOULD)
        restrictions = self._restrictions(filters)
        if query is None or not restrictions:
            return query
        return Query.boolean_query(
            [(TantivyOccur.Must, query), *((TantivyOccur.Must, _unscored(each)) for each in restrictions)]
        )

    def _restrictions(self, filters: Filters) -> list[Query]:
        found = [self._tagged(tag) for tag in filters.tags]
        found += [self._exact("entity", entity) for entity in filters.entities]
        if filters.author is not None:
            found.append(self._exact("author", filters.author))
        if filters.path_prefix:
            found.append(self._beginning("path", filters.path_prefix))
        if filters.project is not None:
            found.append(self._any_of([self._exact("project", term) for term in filters.project.terms]))
        return found

    def _tagged(self, tag: str) -> Query:
        """Return a query for the notes that `has_tag` accepts."""
        name = tag_key(tag)
        return self._any_of([self._exact("tag", name), self._beginning("tag", f"{name}/")])

    def _any_of(self, queries: Sequence[Query]) -> Query:
        return Query.boolean_query([(TantivyOccur.Should, each) for each in queries])

    def _beginning(self, field: str, start: str) -> Query:
        # A fuzzy query with distance 0 and `prefix` is an exact prefix query. A regular expression has a
        # limit of 1,000 states.
        return Query.fuzzy_term_query(self.schema, field, start, distance=0, prefix=True)

    def _exact(self, field: str, value: str) -> Query:
        return Query.term_query(self.schema, field, value, index_option="basic")

    def _node(self, node: Node, occur: Occur) -> Query | None:
        if isinstance(node, Boolean):
            return self._boolean(node)
        if isinstance(node, Beginning):
            # Every note with such a word gets the same score. The score doubles if the word is in the title.
            places = ("text", "title") if node.field is None else (node.field,)
            return _join([(TantivyOccur.Should, self._beginning(name, node.text)) for name in places])
        if isinstance(node, Boosted):
            query = self._node(node.node, occur)
            return None if query is None else Query.boost_query(query, node.factor)
        if isinstance(node, Phrase):
            return self._whole(node.field, node.text, node.slop)
        if isinstance(node, Dated):
            return _join(self._of_time(node.keys))
        if occur is not Occur.SHOULD:
            return self._whole(node.field, node.text)
        return _join(self._alternatives(node))

    def _boolean(self, node: Boolean) -> Query | None:
        """Join the clauses that have tokens.

        If all clauses exclude notes, the query matches all other notes.
        """
        parts = [part for occur, clause in node.clauses for part in self._clause(occur, clause)]
        if all(occur is Occur.MUST_NOT for occur, _ in node.clauses) and parts:
            parts.append((TantivyOccur.Must, _unscored(Query.all_query())))
        return (
            Query.boolean_query(parts) if any(occur != TantivyOccur.MustNot for occur, _ in parts) else None
        )

    def _clause(self, occur: Occur, clause: Node) -> list[_Part]:
        """Return the query parts for one clause."""
        if occur is Occur.SHOULD and isinstance(clause, Word):
            return self._alternatives(clause)
        if occur is Occur.SHOULD and isinstance(clause, Boosted) and isinstance(clause.node, Word):
            return self._alternatives(clause.node, clause.factor)
        query = self._node(clause, occur)
        return [] if query is None else [(_OCCUR[occur], query)]

    def _alternatives(self, word: Word, factor: float = 1.0) -> list[_Part]:
        """Return the clauses of a ranked word. A note matches if it contains any part of the word.

        Scripts without spaces are searched by pairs of characters, because single characters match by chance.

        All terms are on one level. Tantivy can search a disjunction of plain terms without reading every note
        that contains one of the terms.
        """
        parts: list[_Part] = []
        for is_unsegmented, part in words(fold(word.text)):
            share = factor * (FUNCTION_WORD_SHARE if part in FUNCTION_WORDS else 1.0)
            for token in bigrams(part) if is_unsegmented else self.tokens(part):
                parts += self._anywhere(word.field, [token], share)
                if not is_unsegmented:
                    parts += [
                        (TantivyOccur.Should, self._in_field(word.field or "text", [other], worth * share))
                        for other, worth in self.holding(part, token)
                    ]
        return parts

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text as the index stores them."""
        return self.analyzer.analyze(prepare_text(text))

    def _of_time(self, keys: Sequence[str]) -> list[_Part]:
        """Return the clauses for notes whose own date has one of the keys."""
        return [(TantivyOccur.Should, self._in_field("dated", [key], DATED_BOOST)) for key in keys]

    def _whole(self, field: str | None, text: str, slop: int = 0) -> Query | None:
        """Match a text as a phrase. A text that is only a time also matches a note's own date."""
        asked = time_alone(text) if field is None else None
        tokens = self.tokens(text)
        if asked is None or not tokens:
            return self._sequence(field, tokens, slop)
        return _join([*self._anywhere(field, tokens, 1.0, slop), *self._of_time(asked.keys[:1])])

    def _sequence(self, field: str | None, tokens: list[str], slop: int = 0) -> Query | None:
        """Match the tokens as a sequence in `field`, or in any text field.

        `slop` is the maximum number of places between the tokens.
        """
        return _join(self._anywhere(field, tokens, 1.0, slop)) if tokens else None

    def _anywhere(self, field: str | None, tokens: list[str], share: float, slop: int = 0) -> list[_Part]:
        """Match the tokens as a sequence in each possible field. Multiply the score by `share`."""
        places = _EVERYWHERE if field is None else ((field, 1.0),)
        return [
            (TantivyOccur.Should, self._in_field(name, tokens, boost * share, slop)) for name, boost in places
        ]

    def _in_field(self, field: str, tokens: list[str], share: float, slop: int = 0) -> Query:
        if len(tokens) == 1:
            query = Query.term_query(self.schema, field, tokens[0], index_option="freq")
        else:
            query = Query.phrase_query(self.schema, field, list(tokens), slop=slop)
        return query if share == 1.0 else Query.boost_query(query, share)


def _join(parts: list[_Part]) -> Query | None:
    """Return a query that matches any of the parts."""
    if len(parts) < 2:
        return parts[0][1] if parts else None
    return Query.boolean_query(parts)


def _unscored(query: Query) -> Query:
    return Query.const_score_query(query, 0.0)


#: Name of the index format. An index with another name is rebuilt.
FORMAT: Final = "L6"
ANALYZER_NAME: Final = "lithos"
TEXT_FIELDS: Final = ("text", "title", "headings", "body", "entities")
EXACT_FIELDS: Final = ("id", "tag", "entity", "author", "path", "namespace", "dated", "project")

#: Maximum number of characters of a word. Longer words are cut in notes and queries alike, because tantivy
#: drops tokens over 65,530 bytes.
LONGEST_WORD: Final = 200
_LONG_WORD: Final = re.compile(f"[^ ]{{{LONGEST_WORD}}}(?=[^ ])")


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


def make_analyzer() -> TextAnalyzer:
    """Return the analyzer for the output of `prepare_text`.

    The analyzer splits the text at spaces and stems the words as English.
    """
    return TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stemmer("english")).build()


class _WordsAlone(dict[int, int]):
    """A table for `str.translate` that replaces all characters except letters, numbers and marks with spaces.

    A character that this Python's Unicode version does not know is kept, because it may be a letter.
    Splitting words by a regular expression in tantivy would take longer than the rest of indexing.
    """

    def __missing__(self, code: int) -> int:
        character = chr(code)
        category = unicodedata.category(character)
        result = code if character.isalnum() or category[0] == "M" or category == "Cn" else 32
        if code < _REMEMBERED:
            self[code] = result
        return result


#: Number of code points that are cached, which covers the alphabets. Caching all of Unicode would take 100
#: MB.
_REMEMBERED: Final = 0x3000
_WORDS_ALONE: Final = _WordsAlone()


def prepare_text(text: str) -> str:
    """Return `text` for the tokeniser: folded words of at most 200 characters, separated by spaces.

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
        if name != "headings":  # The body already contains the headings.
            document.add_text("text", prepared)
    for alias in entry.aliases:
        prepared = prepare_text(alias)
        document.add_text("title", prepared)
        document.add_text("text", prepared)
    if entry.dates:
        document.add_text("text", prepare_text(entry.dates))
    for entity in entry.entities:
        prepared = prepare_text(entity)
        document.add_text("entities", prepared)
        document.add_text("text", prepared)
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
    return document


MARKER: Final = ".schema_version"
_SEGMENT_KINDS: Final = ("idx", "pos", "term", "store", "fast", "fieldnorm")
_MAGIC: Final = 1337
_TAIL: Final = struct.Struct("<II")
_BLOCK: Final = 1 << 20


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
