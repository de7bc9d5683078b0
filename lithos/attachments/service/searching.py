"""Search in attachments.

The ranking is the same as for notes (`Hybrid`), but uses separate indexes. It always uses the static model,
even if the notes use another model, and it uses no graph. Each row is one place: a page, a card, an element
or a passage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Final

from attrs import define, field, frozen
from outcome import Error

from lithos.attachments.extraction.actor import Attaching
from lithos.attachments.files.shelf import AttachedFile, number_of
from lithos.attachments.model.kinds import asks_for_image, kind_of
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import IndexFailed, SearchBackendFailed
from lithos.kernel.values.graphemes import beginning
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.note_records import NoteRecords
from lithos.notes.rows_coordination import NoteRows
from lithos.search.index.fulltext_schema import Filters
from lithos.search.indexing.semantic import SemanticUnavailable
from lithos.search.indexing.vector_queries import PendingQuery, VectorQueries
from lithos.search.ranking.calibrations import STATIC
from lithos.search.ranking.match_strength import TENTH, WEAK, MatchVerdict, judge
from lithos.search.service.hybrid import LEG_NOTES, LONGEST_QUERY, Hybrid
from lithos.search.service.other_files import OtherHit, OtherQuery
from lithos.search.service.similarity_floors import judged_part
from lithos.search.settings import SearchConfig
from lithos.text.query import QuerySyntaxError, begin_last, parse_query, words_of
from lithos.text.snippet import Terms, find_passage
from lithos.text.snippet_bounds import WINDOW

log = get_logger("lithos.attachments")


#: Maximum number of places of one file in an answer. In measurements, a limit of three missed pages of long
#: documents, and no limit missed other documents (`bench/attachments.py` of ee169747).
MOST_OF_ONE: Final = 6
_serial_and_similarity = itemgetter(0, 2)  # fields of a `VectorHit`


@frozen
class _Ranked:
    scores: Sequence[tuple[int, float]]
    terms: Terms = Terms()
    matches: Mapping[int, MatchVerdict] | None = None


@define(eq=False)
class _Vectors:
    """The vectors of attachments, with the interface that `Hybrid` needs."""

    _attaching: Attaching
    _queries: VectorQueries = field(factory=VectorQueries)

    @property
    def is_answering(self) -> bool:
        return self._attaching.vectors is not None

    def ask(self, query: str, filters: Filters, notes: int, threshold: float) -> PendingQuery:
        vectors = self._attaching.vectors
        if vectors is None:
            return PendingQuery(
                Error(SemanticUnavailable("Attachments have no vectors, because no semantic index is open."))
            )
        among, rules = None, self._attaching.projects
        if filters.path_prefix or filters.project is not None:
            among = [
                serial
                for path, file in self._attaching.files.items()
                if path.startswith(filters.path_prefix or "")
                and (filters.project is None or filters.project.passes(rules.of_path(path)))
                for serial in file.serials()
            ]
        return self._queries.ask(vectors, query, notes, threshold, among)


class AttachmentSearch:
    """Service that searches attachments."""

    def __init__(self, attaching: Attaching, settings: SearchConfig) -> None:
        self._attaching = attaching
        self._settings = settings
        self._vectors = _Vectors(attaching)
        #: An empty catalogue, because note names and conversation turns must not change the ranks of
        #: attachments.
        self._nothing = Catalogue(NoteRecords(NoteRows()))
        self._hybrid: Hybrid | None = None

    def has_any(self, filters: Filters) -> bool:
        """Return whether the filters can match a file. Attachments have no tags, authors or entities."""
        return bool(
            self._attaching.parts
            and self._attaching.fulltext is not None
            and not (filters.tags or filters.author or filters.entities)
        )

    async def search(self, query: OtherQuery) -> list[OtherHit]:
        """Return the best matching places, best first. Raises `SearchBackendFailed` if no index responds."""
        if query.mode == "graph" or not query.query.strip() or not self.has_any(query.filters):
            return []
        ranked = await self._rank(query)
        chosen = list(islice(self._choose(ranked.scores), query.offset, query.offset + query.limit))
        shelf = self._attaching.shelf
        if shelf is None or not chosen:
            return []
        parts = await self._attaching.reading.run(lambda: shelf.parts(serial for serial, _, _ in chosen))
        wants_images = asks_for_image(query.query)
        return [
            OtherHit(
                id=file.id,
                number=file.number,
                name=file.name,
                path=file.path,
                changed_ns=file.file.mtime_ns,
                place=part.place,
                page=part.page,
                text=part.text,
                score=score,
                snippet=snippet_of(part.text, ranked.terms),
                judged=None if ranked.matches is None else ranked.matches.get(serial, WEAK),
                # Without a request for images, an image may not lead, because its text is only its name and
                # captions.
                leads=wants_images or kind_of(file.path) != "image",
            )
            for serial, score, file in chosen
            if (part := parts.get(serial)) is not None
        ]

    def _choose(self, scores: Sequence[tuple[int, float]]) -> Iterator[tuple[int, float, AttachedFile]]:
        """Yield the matching places of existing files, with a maximum number per file."""
        taken: Counter[str] = Counter()
        for serial, score in scores:
            path = self._attaching.numbers.get(number_of(serial))
            if path is not None and taken[path] < MOST_OF_ONE:
                taken[path] += 1
                yield serial, score, self._attaching.files[path]

    async def _rank(self, query: OtherQuery) -> _Ranked:
        fulltext = self._attaching.fulltext
        assert fulltext is not None
        if self._hybrid is None:
            self._hybrid = Hybrid(self._vectors, self._vectors, fulltext, self._settings, self._nothing)
        hybrid = self._hybrid
        filters = Filters(path_prefix=query.filters.path_prefix, project=query.filters.project)
        wanted = max(TENTH, LEG_NOTES, query.offset + query.limit)
        try:
            if query.mode == "fulltext":
                node = parse_query(query.query[:LONGEST_QUERY])
                if node is None:
                    return _Ranked(())
                node = begin_last(node) or node if query.prefix else node
                found = fulltext.search(node, wanted, filters)
                terms, matches = hybrid.judge_words(words_of(node), found)
                return _Ranked(found, terms, matches)
            if query.mode == "semantic":
                near = await self._vectors.ask(query.query, filters, wanted, query.threshold).hits()
                scores = list(map(_serial_and_similarity, near))
                likely, least = judged_part(scores, query.threshold)
                terms, matches = hybrid.judge_meaning(query.query, likely, least, calibration=STATIC)
                return _Ranked(scores, terms, matches)
        except QuerySyntaxError:
            return _Ranked(())  # the note search reports the error in the query
        except (IndexFailed, SemanticUnavailable) as failure:
            raise SearchBackendFailed(f"Attachments could not be searched: {failure}") from failure
        ranking = await hybrid.rank(query.query, filters, wanted, query.threshold, is_typed=query.prefix)
        matches = judge(hybrid.chances(ranking), hybrid.confidence(ranking))
        return _Ranked(list(ranking.scores), ranking.terms, None if ranking.failed else matches)

    async def beside(self, query: OtherQuery) -> list[OtherHit]:
        """Return the first few places, for ranking together with notes.

        Return an empty list if attachments cannot be searched at present.
        """
        try:
            return await self.search(query)
        except SearchBackendFailed as failure:
            log.warning("attachments left out of search", reason=failure.message)
            return []


def snippet_of(text: str, terms: Terms) -> str:
    """Return the passage with the most query terms, or the beginning if the text contains no term."""
    passage = find_passage(text, terms).text
    return passage or beginning(" ".join(text[: WINDOW * 2].split()), WINDOW)
