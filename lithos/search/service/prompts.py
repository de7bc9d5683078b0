"""Passages for the prompt of a person, if a note matches the prompt strongly (docs/spec/search.md §6).

A client's hook asks this before each prompt, so most calls must return nothing. A call without a passage
leaves no trace in the access log, and no call is remembered as a question.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Final

import trio
from attrs import field, frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.events.model.agents import SEARCH_RESULT, AuditRow
from lithos.kernel.parts import Clock
from lithos.kernel.values.principals import UNKNOWN_AGENT
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.lineage import Lineage
from lithos.notes.service.texts import NoteTexts
from lithos.search.embedding.tokenizer import load_pieces
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_schema import Filters
from lithos.search.ranking.match_strength import CANDIDATES, Features, MatchVerdict, probability
from lithos.search.ranking.prompt_match import (
    PROMPT_CALIBRATIONS,
    SECOND_SHARE,
    best_parts,
    parts_of,
)
from lithos.search.ranking.prompt_words import PromptWords
from lithos.search.service.search import Hit, Search
from lithos.text.chunk import ChunkSizes
from lithos.text.hidden_text import hide, without_hidden
from lithos.text.snippet import Snippet, Terms, find_passage, plain_passage
from lithos.text.words.tokens import Count, count_with, cut_tidily

#: Maximum number of passages, and of tokens of a title, of a path, and of a passage with title and path. The
#: hook adds a heading and stays below 400 tokens.
MOST_PASSAGES: Final = 2
_TITLE_TOKENS, _PATH_TOKENS, _ROW_TOKENS = 40, 80, 180
#: Maximum number of chunks of a note among which the best passage is chosen.
_MOST_CHUNKS: Final = 200
_KEY_BYTES: Final = 6


@frozen(kw_only=True)
class PromptRequest:
    """A prompt, the keys of passages that its session has seen, and the filters for notes."""

    query: str
    seen: frozenset[str] = frozenset()
    filters: Filters = field(factory=Filters)
    agent_id: str | None = None


@frozen
class PromptPassage:
    """A passage as a hit with a shortened title and snippet, and the key that identifies the passage."""

    hit: Hit
    title: str
    key: str


@frozen
class JudgedNote:
    """A note with the probability that a part of the prompt is about it, and the terms of that part."""

    entry: Entry
    features: Features
    chance: float
    is_strong: bool
    terms: Terms


class Prompts:
    """Finds the passages for prompts."""

    def __init__(
        self,
        search: Search,
        fulltext: FulltextIndex,
        catalogue: Catalogue,
        lineage: Lineage,
        texts: NoteTexts,
        sizes: ChunkSizes,
        coordinator: Coordinator,
        clock: Clock,
    ) -> None:
        self._search = search
        self._fulltext = fulltext
        self._catalogue = catalogue
        self._lineage = lineage
        self._texts = texts
        self._sizes = sizes
        self._coordinator = coordinator
        self._clock = clock
        self._count: Count | None = None
        self._words = PromptWords(fulltext.terms_in)

    async def find(self, request: PromptRequest) -> list[PromptPassage]:
        """Return at most two new passages, best first. Without a strong match the result is empty.

        Raises `SearchBackendFailed` and `IndexFailed`.
        """
        await self._search.reach_all()
        found = await self._rank(request)
        if not any(each.is_strong for each in found):
            return []
        passages = await self._cut(found, request.seen)
        now, agent = self._clock(), request.agent_id or UNKNOWN_AGENT
        self._coordinator.record_access(
            [AuditRow(agent, each.hit.entry.note.id, SEARCH_RESULT, now) for each in passages]
        )
        return passages

    async def _rank(self, request: PromptRequest) -> list[JudgedNote]:
        """Return the notes that the prompt is probably about, best first, up to the number of passages."""
        best: dict[int, JudgedNote] = {}
        for each in await self.judge(request):
            known = best.get(each.entry.serial)
            if known is None or each.chance > known.chance:
                best[each.entry.serial] = each
        found = sorted(best.values(), key=lambda each: -each.chance)[:MOST_PASSAGES]
        return [each for each in found if each.chance >= SECOND_SHARE * found[0].chance]

    async def judge(self, request: PromptRequest) -> list[JudgedNote]:
        """Return the first notes of each part of the prompt that may be shown and share enough words."""
        parts = parts_of(request.query)
        idfs = [self._fulltext.idf(self._fulltext.content_stems(part)) for part in parts]
        await self._lineage.settle()
        judged: list[JudgedNote] = []
        for place in best_parts(idfs, self._fulltext.idf_of_unknown()):
            judged += await self._judge_part(parts[place], idfs[place], request.filters)
        return judged

    async def _judge_part(self, part: str, idf: Mapping[str, float], filters: Filters) -> list[JudgedNote]:
        ranking = await self._search.hybrid.rank(part, filters, CANDIDATES, self._search.threshold)
        rule = PROMPT_CALIBRATIONS[ranking.calibration]
        subject = self._words.of(part, idf)
        held = self._fulltext.held_stems(subject.all_stems(), list(ranking.features))
        judged: list[JudgedNote] = []
        for serial, features in ranking.features.items():
            entry = self._catalogue.at_serial(serial)
            shares = subject.are_enough(held.get(serial, ()))
            if shares and entry is not None and self._may_show(entry):
                chance = probability(features, rule)
                judged.append(JudgedNote(entry, features, chance, chance >= rule.threshold, ranking.terms))
        return judged

    def _may_show(self, entry: Entry) -> bool:
        """Return whether a note may be shown to every agent, without a warning. No agent has asked for it."""
        note, now = entry.note, self._clock()
        is_plain = note.status == "active" and note.access_scope == "shared" and not note.is_stale(now)
        return is_plain and not self._lineage.warnings(note.id, now)

    async def _cut(self, found: Sequence[JudgedNote], seen: Collection[str]) -> list[PromptPassage]:
        """Return the passages of these notes that are new, if at least one of them is strong."""
        entries = [each.entry for each in found]
        await self._texts.frames.learn(entries)
        count = await self._counter()

        def cut_one(place: int, content: str) -> PromptPassage | None:
            return self._passage(found[place], content, count)

        cut = zip(found, await self._texts.map_contents(entries, cut_one), strict=True)
        new = [(of, each) for of, each in cut if each is not None and each.key not in seen]
        return [each for _, each in new] if any(of.is_strong for of, _ in new) else []

    def _passage(self, found: JudgedNote, content: str, count: Count) -> PromptPassage | None:
        """Return the best passage of a note. If its path is too long to be shown, return None.

        The passage is part of one chunk, so two passages with different keys never overlap.
        """
        entry = found.entry
        shown = hide(content, self._texts.frames.of(entry))
        best, chunk = Snippet("", -1.0), ""
        for start, end in islice(self._sizes.spans(entry.note.title, content), _MOST_CHUNKS):
            text = plain_passage(without_hidden(shown[max(0, start) : end]), entry.note.title)
            passage = find_passage(text, found.terms) if text else best
            if text and passage.share > best.share:
                best, chunk = Snippet(passage.text or text, passage.share), text
        title = cut_tidily(" ".join(entry.note.title.split()), _TITLE_TOKENS, count)
        if not chunk or count(entry.path) > _PATH_TOKENS:
            return None
        text = cut_tidily(best.text, _ROW_TOKENS - count(f"{title} ({entry.path})"), count)
        hit = Hit(entry, found.chance, text, judged=MatchVerdict("strong", found.chance))
        return PromptPassage(hit, title, _key_of(entry.note.id, chunk))

    async def _counter(self) -> Count:
        if self._count is None:
            self._count = count_with(await trio.to_thread.run_sync(load_pieces))
        return self._count


def _key_of(note_id: str, chunk: str) -> str:
    """Return a short key for a passage of a note."""
    digest = hashlib.blake2b(f"{note_id}\0{chunk}".encode("utf-8", "replace"), digest_size=_KEY_BYTES)
    return urlsafe_b64encode(digest.digest()).decode()
