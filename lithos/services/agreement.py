"""Telling notes that answer a question from notes that are merely near it.

Something is always near: in a vault of documentation every question without an answer has a note above the
threshold of a search. An answer also uses the question's words. `bench/quality.md` has the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from lithos.actors.catalogue import Entry
from lithos.actors.vector_port import ChunkSizes
from lithos.core.function_words import FUNCTION_WORDS
from lithos.services.texts import NoteTexts
from lithos.stores.fulltext import FulltextIndex

#: Characters of a question whose words are compared.
LONGEST_QUESTION: Final = 4_000


@frozen
class Agreement:
    """Compares a question with the notes that are near it; `least` is `search.cache_threshold`."""

    _texts: NoteTexts
    _sizes: ChunkSizes
    _fulltext: FulltextIndex
    _least: float

    async def keep(self, question: str, found: Sequence[tuple[Entry, float]]) -> list[Entry]:
        """Those (with their similarity) that agree with the question, in the order given.

        Agreement is the mean of the similarity and of the share of the question's words (stemmed, without
        function words) that one passage of the note has, the title and its headings included. Of a question
        without words the similarity decides alone. A note that cannot be read does not agree.
        """
        asked = self._telling_words(question)

        def agrees(position: int, content: str) -> bool:
            entry, similarity = found[position]
            if not asked:
                return similarity >= self._least
            # Not only the nearest passage, which may be a bare title.
            passages = self._sizes.chunks(entry.note.title, content)
            shared = (len(asked & self._fulltext.terms(passage.embedded)) for passage in passages)
            return (similarity + max(shared, default=0) / len(asked)) / 2 >= self._least

        agreeing = await self._texts.map_contents([entry for entry, _ in found], agrees)
        return [entry for (entry, _), is_kept in zip(found, agreeing, strict=True) if is_kept]

    def _telling_words(self, question: str) -> frozenset[str]:
        """The words by which an answer is known; all of them when there are only function words."""
        words = self._fulltext.terms(question[:LONGEST_QUESTION])
        return words - self._fulltext.terms(" ".join(FUNCTION_WORDS)) or words
