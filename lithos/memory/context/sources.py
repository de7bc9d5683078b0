"""The texts of the notes and attachments of a briefing, divided into passages (docs/spec/context.md §1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
from attrs import define, frozen

from lithos.kernel.actors.threads import Threads
from lithos.kernel.log import get_logger
from lithos.kernel.parts import Clock
from lithos.kernel.values.errors import IndexFailed
from lithos.memory.briefing.parts import AboutNote, LeftOut
from lithos.memory.briefing.passages import LEAST_TEXT, SourceNote, affordable
from lithos.memory.context.candidates import ContextCandidate, RankedCandidates
from lithos.memory.context.opening import WITHHOLDING
from lithos.memory.context.passage_cache import Splits
from lithos.memory.context.project_scope import ProjectScope
from lithos.memory.context.request import ContextRequest
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.lineage import Lineage
from lithos.notes.model.note import NoteWarning
from lithos.notes.service.texts import NoteTexts
from lithos.search.indexing.semantic import SemanticBackend, SemanticUnavailable
from lithos.search.ranking.match_strength import WEAK
from lithos.search.service.other_files import OtherHit
from lithos.text.dates import AskedTime, asked_time, own_date

log = get_logger("lithos.context")

#: Maximum characters to read of all candidates together. Text that takes longer to split than prose counts
#: more. Candidates beyond this limit get `LEAST_TEXT` characters each.
MOST_TEXT: Final = 2_000_000
#: Maximum number of warnings in an answer.
MOST_WARNINGS: Final = 30
#: Minimum score, relative to the best score, at which a withheld note is named.
WORTH_NAMING: Final = 0.3
#: Score of an attachment hit, relative to the best score, by match strength.
ANSWERING: Final[Mapping[str, float]] = {"strong": 1.0, "fair": 0.6, "weak": 0.0}
#: Factor on the score of a note with an own date in the period that the question names.
OF_THAT_TIME: Final = 1.15


@frozen
class BriefingSources:
    """The sources of a briefing, and the candidates that were withheld, deleted or not read."""

    sources: Sequence[SourceNote]
    withheld: Sequence[LeftOut]
    warnings: Sequence[AboutNote]
    is_degraded: bool


@define(eq=False)
class SourceReader:
    """Reader of the sources of briefings."""

    _catalogue: Catalogue
    _lineage: Lineage
    _texts: NoteTexts
    _semantic: SemanticBackend
    _splits: Splits
    _working: Threads
    _clock: Clock

    async def read(self, request: ContextRequest, found: RankedCandidates) -> BriefingSources:
        """Return the texts of the candidates that may be shown.

        The texts are divided into passages in a worker thread.
        """
        now = self._clock()
        trusted: list[ContextCandidate] = []
        withheld: list[LeftOut] = []
        warnings: list[AboutNote] = []
        best = max((each.score for each in found.notes), default=0.0)
        gate = request.gate(self._catalogue)
        await self._lineage.settle()
        for each in found.notes:
            note = each.entry.note
            told = (
                gate.veil(one, self._catalogue.get(one.id)) for one in self._lineage.warnings(note.id, now)
            )
            about = [one for one in told if one is not None]
            reason = next((warning for warning in about if warning.kind in WITHHOLDING), None)
            if reason is None:
                trusted.append(each)
            elif each.score >= WORTH_NAMING * best:
                withheld.append(_withheld(each.entry, reason))
            else:
                continue
            warnings += [AboutNote(note.id, note.title, warning, reason is not None) for warning in about]
        entries = [each.entry for each in trusted]
        contents = await self._texts.versioned(entries)
        await self._texts.frames.learn(entries)
        nearness, is_degraded = await self._nearness(request.query, entries)
        read = list(zip(trusted, contents, strict=True))
        asked = asked_time(request.query) if request.is_compact else None
        sources = await self._working.run(lambda: self._split(read, nearness, asked, request.is_compact))
        if request.scope.own is not None:
            sources = [self._marked(each, request.scope) for each in sources]
        serials = [entry.serial for entry in entries]
        if len(still := self._catalogue.at_serials(serials)) < len(serials):
            # Only this code drops removed notes from the cache. Otherwise they would stay in it until newer
            # notes replace them.
            for serial in set(serials).difference(entry.serial for entry in still):
                self._splits.forget(serial)
        ids = {source.id for source in sources} | {each.id for each in withheld}
        warnings = [each for each in warnings if each.note_id in ids]
        return BriefingSources(sources, withheld, warnings[:MOST_WARNINGS], is_degraded)

    def _marked(self, source: SourceNote, scope: ProjectScope) -> SourceNote:
        """Return the source with its project if the agent works on another one."""
        entry = self._catalogue.get(source.id)
        project = "" if entry is None else scope.foreign(self._catalogue.projects.of(entry))
        return attrs.evolve(source, project=project) if project else source

    def with_attachments(
        self, sources: Sequence[SourceNote], hits: Sequence[OtherHit], scope: ProjectScope
    ) -> Sequence[SourceNote]:
        """Return the sources with the attachment hits. A strong hit counts as much as the best note."""
        if not hits:
            return sources
        best = max((source.score for source in sources), default=1.0)
        beside = [
            SourceNote(
                id=hit.id,
                title=hit.name if hit.page is None else f"{hit.name}, page {hit.page}",
                path=hit.path,
                version=0,
                score=best * ANSWERING[(hit.judged or WEAK).match],
                split=self._splits.split(-1 - hit.number, hit.name, hit.text),
                reasons=("matches the query",),
                project=scope.foreign(self._catalogue.projects.rules.of_path(hit.path)),
            )
            for hit in hits
        ]
        return sorted([*sources, *beside], key=lambda each: (-each.score, each.id))

    async def _nearness(self, query: str, entries: Sequence[Entry]) -> tuple[dict[int, list[float]], bool]:
        """Return the similarity of each chunk to the query. Without a query, notes are read from the top."""
        if not query.strip():
            return {entry.serial: [1.0] for entry in entries}, False
        try:
            serials = [entry.serial for entry in entries]
            return (await self._semantic.similarities(query, serials) if serials else {}), False
        except (SemanticUnavailable, IndexFailed) as failure:
            log.warning("passages chosen by full-text search only", reason=str(failure))
            return {}, True

    def _split(
        self,
        read: Sequence[tuple[ContextCandidate, tuple[str, int] | None]],
        nearness: dict[int, list[float]],
        asked: AskedTime | None,
        is_compact: bool,
    ) -> list[SourceNote]:
        """Return the sources.

        Of very long texts, only the first are read completely. Runs in a worker thread.
        """
        left, sources = MOST_TEXT, list[SourceNote]()
        for candidate, shown in read:
            if shown is None:  # The note was deleted during this read.
                continue
            entry, (content, version) = candidate.entry, shown
            own = own_date(entry.note.extra, entry.note.title, entry.path, content) if is_compact else None
            is_asked = asked is not None and own is not None and asked.covers(own)
            content, cost = affordable(content, max(LEAST_TEXT, left))
            left -= cost
            note = entry.note
            sources.append(
                SourceNote(
                    id=note.id,
                    title=note.title,
                    path=entry.path,
                    version=version,
                    score=candidate.score * (OF_THAT_TIME if is_asked else 1),
                    date="" if own is None else str(own),
                    dated="" if own is None else own.words,
                    split=self._splits.split(entry.serial, note.title, content, self._texts.frames.of(entry)),
                    nearness=nearness.get(entry.serial, ()),
                    reasons=candidate.reasons,
                )
            )
        # Notes from the requested period may now rank before notes that had a better score.
        return sorted(sources, key=lambda each: (-each.score, each.id)) if asked is not None else sources


def _withheld(entry: Entry, warning: NoteWarning) -> LeftOut:
    note = entry.note
    return LeftOut(
        id=note.id,
        title=note.title,
        tokens=-(-entry.state.size // 4),
        reason=f"{warning.kind}: {warning.reason}",
    )
