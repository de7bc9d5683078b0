"""The full-text index (tantivy, BM25, one commit per batch), and lead coverage computed from stored stems."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Final, Self

from tantivy import Index, IndexWriter, Query, Searcher

from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import IndexFailed
from lithos.search.index import fulltext_schema
from lithos.search.index.best_hits import best_hits
from lithos.search.index.fulltext_query import QueryTranslator
from lithos.search.index.fulltext_schema import (
    ANALYZER_NAME,
    FORMAT,
    Filters,
    FulltextEntry,
    index_format,
    make_document,
    make_schema,
)
from lithos.search.index.lead_stems import LEADS, LeadRow, Leads
from lithos.search.index.stemming import QueryStemmer, VaultLanguages, count_languages, make_analyzer
from lithos.search.ranking.compounds import Compounds, long_words
from lithos.search.ranking.lead_coverage import Covered, LeadText, lead_coverage
from lithos.text.query import Node
from lithos.text.words.analysis import FUNCTION_WORDS
from lithos.text.words.frequencies import bm25_idf
from lithos.text.words.languages import COMPOUNDING, ENGLISH, NO_FORMS, WordForms

log = get_logger("lithos.fulltext")

#: Heap size of the writer in bytes. This is tantivy's minimum, because a larger heap does not speed up
#: batches of a few notes.
_WRITER_HEAP: Final = 15_000_000
#: Number of commits after which the tantivy index is reopened. Tantivy remembers the path of every file that
#: it ever opened (`MmapCache` never removes its weak entries): 20 paths and 4 KB per commit.
RENEWED_AFTER: Final = 500
#: Share of a word's score that a longer compound gets if it contains the word. The share applies if the word
#: itself also occurs.
COMPOUND_SHARE: Final = 0.1
#: Stamp of a note whose stems are missing or outdated. No note has this value as its real stamp.
INCOMPLETE: Final = -1
_CLOSED: Final = "The full-text index is closed."


class _Unopenable(Exception):
    """The error raised if no usable index of this format exists. The message has the reason."""


class FulltextIndex:
    """The full-text index of the notes.

    Only one thread at a time may call `apply` and `close`. Other threads may read meanwhile: they use the
    searcher of the last commit, which never changes.
    """

    def __init__(
        self,
        directory: Path,
        index: Index,
        rebuild_reason: str | None,
        leads: Leads | None = None,
        language: str | None = None,
    ) -> None:
        """Wrap an open tantivy index. Callers use `open` instead.

        Without `leads`, lead coverage is not available. All notes are in `language`, or each in its own.
        """
        #: Reason why the index was empty at first. `None` if an existing index was opened.
        self.rebuild_reason = rebuild_reason
        self._directory = directory
        self._index = index
        self._writer: IndexWriter | None = None
        self._language = language
        self._stemmer = QueryStemmer(make_analyzer(), self._count_languages, self._count)
        self._translator = QueryTranslator(index.schema, self._stemmer, holding=self._holding)
        self._leads = leads
        self._compounds = Compounds()
        if leads is not None:
            for words, of_language in leads.long_words():
                self._compounds.add(words, has_parts=of_language in COMPOUNDING)
        #: Notes whose stems were missing or outdated when the index was opened. None until this is checked.
        self._lacking: set[int] | None = None
        self._comparing = threading.Lock()
        self._function_words = frozenset(self._stemmer.tokens(" ".join(FUNCTION_WORDS)))
        self._searcher = index.searcher()
        #: The languages of the notes, and the searcher that counted them.
        self._languages: tuple[Searcher, VaultLanguages] | None = None
        self._commits = 0  # Number of commits since the index was opened.
        #: Time of the last commit, `None` before the first commit.
        self.last_updated: datetime | None = None
        if self.document_count():
            self.last_updated = datetime.fromtimestamp((directory / "meta.json").stat().st_mtime, UTC)
        self._behind: str | None = None

    @classmethod
    def open(cls, directory: Path, language: str | None = None) -> Self:
        """Open the index in `directory`. Replace a missing, foreign or damaged index with an empty index.

        All notes are stemmed in `language`, or each note in its own language.

        Raises `OSError` if the directory cannot be read or written.
        """
        reason = None
        try:
            index = _open_existing(directory, index_format(language))
        except _Unopenable as error:
            reason = str(error)
            fulltext_schema.wipe(directory)
            index = _open_tantivy(directory)
            fulltext_schema.write_marker(directory, index_format(language))
        return cls(directory, index, reason, Leads.open(directory / LEADS, datetime.now(UTC)), language)

    @classmethod
    def open_sound(cls, directory: Path) -> Self:
        """Open the index in `directory` unchanged. Unlike `open`, this method deletes nothing.

        Raises `IndexFailed` if the index is missing, damaged or of another format.
        """
        try:
            return cls(directory, _open_existing(directory, fulltext_schema.read_marker(directory)), None)
        except _Unopenable as error:
            raise IndexFailed(str(error)) from error

    @property
    def was_rebuilt(self) -> bool:
        """Return whether the index was empty at first and must be filled from the notes."""
        return self.rebuild_reason is not None

    def apply(self, upserts: Sequence[FulltextEntry], removals: Collection[int]) -> None:
        """Delete the serials in `removals`, index `upserts`, commit once and make the result searchable.

        Raises `IndexFailed`. The index is then unchanged, and the call can be repeated.
        """
        if not upserts and not removals:
            return
        try:
            with self._comparing, self._changed_leads(upserts, removals):
                self._commit(upserts, removals)
        # Tantivy reports a full disk as `ValueError`.
        except (ValueError, OSError, RuntimeError, DatabaseFailed) as error:
            # A writer stays unusable after a failure and panics on rollback. Dropping the writer discards the
            # batch.
            self._writer = None
            # The frames of the error would keep the writer in memory, and with it tantivy's lock.
            traceback.clear_frames(error.__traceback__)
            raise IndexFailed(
                f"The full-text index in {self._directory} could not be written: {error}"
            ) from error
        if self._lacking:
            self._lacking -= {*removals, *(entry.serial for entry in upserts)}
        self.last_updated = datetime.now(UTC)

    def _changed_leads(
        self, upserts: Sequence[FulltextEntry], removals: Collection[int]
    ) -> AbstractContextManager[None]:
        """Return a context that commits the stems of a batch only if the block succeeds.

        If the process ends between the commits of both stores, the next process finds stamps that differ
        (`stamps`).
        """
        if self._leads is None:
            return nullcontext()
        latest = {entry.serial: entry for entry in upserts}
        return self._leads.changed(
            [self._lead_row(entry) for entry in latest.values()],
            [serial for serial in removals if serial not in latest],
        )

    def _language_of(self, entry: FulltextEntry) -> str:
        return self._language or entry.language

    def _lead_row(self, entry: FulltextEntry) -> LeadRow:
        """Return the stems of a note and its long words."""
        language = self._language_of(entry)
        names = [" ".join(entry.aliases)] if entry.aliases else []
        passages = [self._stemmer.tokens_in(language, passage) for passage in (*names, *entry.passages)]
        if entry.own is not None:  # The date is last, so that other words are not shifted.
            passages.append(self._stemmer.tokens_in(language, entry.own.words))
        words = long_words(chain.from_iterable(passages))
        self._compounds.add(words, has_parts=language in COMPOUNDING)
        text = LeadText.of(passages if entry.has_text else [[], *passages])
        return LeadRow(entry.serial, entry.stamp, text, words, language)

    def _count(self, token: str) -> int:
        """Return the number of notes that have a token."""
        return self._searcher.doc_freq("text", token)

    def _count_languages(self) -> VaultLanguages:
        """Return the languages of the notes. They are counted once after each commit."""
        searcher, counted = self._searcher, self._languages
        if counted is None or counted[0] is not searcher:
            self._languages = counted = searcher, count_languages(searcher)
        return counted[1]

    def _holding(self, word: str, tokens: Sequence[str]) -> list[tuple[str, float]]:
        """Return the terms of the compounds that contain a word, each with its weight.

        The weight of a compound is at most the weight of the word.

        A rare compound would score higher than the word itself. Each compound is therefore weighted as if its
        frequency were that of all compounds together.
        """
        if word in FUNCTION_WORDS:
            return []
        if self._count_languages().all:
            others = self._compounds.holding(word, *tokens, is_word=any(map(self._count, tokens)))
        else:
            others = self._compounds.holding(word)
        if not others:
            return []
        held = {other: self._count(other) for other in others}
        found = {other: notes for other, notes in held.items() if notes and other not in tokens}
        if not found:
            return []
        own, count = max(map(self._count, tokens), default=0), self._searcher.num_docs
        worth = bm25_idf(count, min(count, own + sum(found.values())))
        share = COMPOUND_SHARE if own else 1.0
        return [(other, share * worth / bm25_idf(count, notes)) for other, notes in found.items()]

    def _commit(self, upserts: Sequence[FulltextEntry], removals: Collection[int]) -> None:
        documents = {entry.serial: make_document(entry, self._language_of(entry)) for entry in upserts}
        is_first = self._writer is None
        if self._commits >= RENEWED_AFTER:
            self._renew()
        writer = self._writer
        if writer is None:
            writer = self._writer = self._index.writer(heap_size=_WRITER_HEAP, num_threads=1)
        for serial in {*removals, *documents}:
            # A deletion makes the commit open every segment, which is a fifth of its cost. A new note needs
            # no deletion. The first batch after a failure always deletes, because the failed batch may have
            # been committed without updating the searcher.
            if is_first or self._searcher.doc_freq("serial", serial):
                writer.delete_documents_by_term("serial", serial)
        for document in documents.values():
            writer.add_document(document)
        writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()
        self._commits += 1

    def _renew(self) -> None:
        """Reopen the index after the running merges end.

        Running searches use the old index until they end.
        """
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.wait_merging_threads()
        index = _open_tantivy(self._directory)
        searcher = index.searcher()
        if self._searcher.num_docs and not searcher.num_docs:  # Tantivy creates a missing index.
            raise ValueError(
                "its files were removed while it was open; restart Lithos to index all notes again"
            )
        self._index, self._searcher, self._commits = index, searcher, 0

    def stamps(self) -> dict[int, int]:
        """Return the stamp of every indexed note by serial.

        Notes with missing or outdated stems get `INCOMPLETE`.

        A note with the stamp `INCOMPLETE` must be indexed again, or removed if it no longer exists. Raises
        `IndexFailed`.
        """
        if self._lacking is None and self._leads is not None:
            with self._comparing:  # While the lock is held, no batch is committed to only one of both stores.
                try:
                    kept = self._leads.stamps()
                except DatabaseFailed as error:
                    raise IndexFailed(f"The stems in {self._directory} cannot be read: {error}") from error
                indexed = self._indexed()
                self._lacking = {serial for serial, stamp in indexed.items() if kept.get(serial) != stamp}
        lacking = self._lacking or ()
        return {
            serial: INCOMPLETE if serial in lacking else stamp for serial, stamp in self._indexed().items()
        }

    def _indexed(self) -> dict[int, int]:
        searcher = self._searcher
        if not searcher.num_docs:
            return {}
        hits = searcher.search(Query.all_query(), searcher.num_docs, count=False).hits
        addresses = [address for _, address in hits]
        serials = searcher.fast_field_values("serial", addresses)
        stamps = searcher.fast_field_values("stamp", addresses)
        return {
            int(s): int(t) for s, t in zip(serials, stamps, strict=True) if s is not None and t is not None
        }

    def _unreadable(self, error: Exception) -> IndexFailed:
        return IndexFailed(f"The full-text index in {self._directory} cannot be read: {error}")

    def document_count(self) -> int:
        """Return the number of indexed notes."""
        return self._searcher.num_docs

    def tell_behind(self, reason: str | None) -> None:
        """Make searches fail with this reason while the index lacks notes.

        Searches never answer from a stale index without an error.
        """
        self._behind = reason

    def search(self, node: Node, limit: int, filters: Filters) -> list[tuple[int, float]]:
        """Return (serial, BM25 score) of the `limit` best notes, best first. Ties are ordered by serial.

        Raises `IndexFailed` if the engine cannot read its files, or if `tell_behind` set a reason.
        """
        if self._behind is not None:
            raise IndexFailed(self._behind)
        try:
            query = self._translator.translate(node, filters)
            return best_hits(self._searcher, query, limit) if query is not None else []
        except (ValueError, OSError, RuntimeError) as error:
            raise self._unreadable(error) from error

    def content_stems(self, text: str) -> list[str]:
        """Return the distinct stems of a query without function words.

        If only function words remain, return all stems.
        """
        stems = self._stemmer.stems(text)
        return [stem for stem in stems if stem not in self._function_words] or stems

    def word_forms(self, text: str) -> WordForms:
        """Return the stems of the words of a query that are not in English, for snippets.

        Raises `IndexFailed`.
        """
        if not self._count_languages().all:
            return NO_FORMS
        try:
            return self._stemmer.forms(text)
        except (ValueError, OSError, RuntimeError) as error:
            raise self._unreadable(error) from error

    def idf(self, stems: Iterable[str]) -> dict[str, float]:
        """Return the BM25 inverse document frequency of each stem in field `text`.

        Unknown stems get `ln(1 + N)`.

        Raises `IndexFailed`.
        """
        try:
            count = self._searcher.num_docs
            seen = {stem: self._searcher.doc_freq("text", stem) for stem in stems}
        except (ValueError, OSError, RuntimeError) as error:
            raise self._unreadable(error) from error
        return {stem: bm25_idf(count, found) for stem, found in seen.items()}

    def idf_of_unknown(self) -> float:
        """Return the inverse document frequency of a stem that occurs in no note."""
        return bm25_idf(self._searcher.num_docs, 0)

    def coverage(self, idf: Mapping[str, float], serials: Sequence[int]) -> Mapping[int, Covered]:
        """Return how well each of these notes covers the stems of a query.

        Notes without stored stems are left out.
        """
        texts = self._lead_texts(serials)
        return dict(zip(texts, lead_coverage(list(texts.values()), idf), strict=True))

    def held_stems(self, stems: Sequence[str], serials: Sequence[int]) -> dict[int, frozenset[str]]:
        """Return which of these stems each note has. Notes without stored stems are left out."""
        return {serial: text.held(stems) for serial, text in self._lead_texts(serials).items()}

    def _lead_texts(self, serials: Sequence[int]) -> Mapping[int, LeadText]:
        if self._leads is None or not serials:
            return {}
        try:
            return self._leads.texts(serials)
        except (DatabaseFailed, ValueError) as failure:
            log.warning("lead coverage skipped", reason=str(failure))
            return {}

    def search_all(self, node: Node, filters: Filters) -> list[tuple[int, float]]:
        """Return all hits of `search`, without a limit."""
        return self.search(node, max(1, self.document_count()), filters)

    def terms(self, text: str) -> frozenset[str]:
        """Return the index terms of a text in each language: stems, and pieces of scripts without spaces."""
        languages = (ENGLISH, *self._count_languages().all)
        return frozenset([token for each in languages for token in self._stemmer.tokens_in(each, text)])

    def terms_in(self, language: str, text: str) -> frozenset[str]:
        """Return the index terms of a text in a language, and those of the same words in an English note."""
        return frozenset(self._stemmer.tokens(text)).union(self._stemmer.tokens_in(language, text))

    def close(self) -> None:
        """Wait for merges and release the writer and the files. Later searches are refused."""
        if self._behind == _CLOSED:
            return
        self._behind = _CLOSED
        leads, self._leads = self._leads, None
        if leads is not None:
            leads.close()
        writer, self._writer = self._writer, None
        try:
            if writer is not None:
                writer.wait_merging_threads()
        except (ValueError, OSError, RuntimeError) as error:
            raise IndexFailed(
                f"The full-text index in {self._directory} did not close cleanly: {error}"
            ) from error
        finally:
            # As long as either object exists, a tantivy thread checks the directory twice a second.
            self._languages = None
            del self._index, self._searcher


def _open_existing(directory: Path, name: str | None) -> Index:
    """Open the index on disk. Raise `_Unopenable` unless the index is complete and has the format `name`."""
    marker = fulltext_schema.read_marker(directory)
    if marker is None:
        raise _Unopenable("no index exists" if not directory.exists() else "the format marker is missing")
    if marker != name or not fulltext_schema.is_current(marker):
        raise _Unopenable(f"the index has format {marker[:40]!r}, not {name if name != marker else FORMAT!r}")
    damage = fulltext_schema.find_damage(directory)
    if damage is not None:
        raise _Unopenable(f"the index is damaged: {damage}")
    try:
        return _open_tantivy(directory)
    except ValueError as error:
        raise _Unopenable(f"the index cannot be opened: {error}") from error


def _open_tantivy(directory: Path) -> Index:
    index = Index(make_schema(), path=str(directory), reuse=True)
    index.register_tokenizer(ANALYZER_NAME, make_analyzer())
    # Reload on demand only. The other policy checks the directory in a separate thread.
    index.config_reader("manual", 0)
    index.reload()
    return index
