"""Knowledge tests out of what agents asked and cited: `lithos evaluate --from-receipts`.

The memory of questions in `stats.db` has the words of each question and the notes that were cited for it.
What an agent asked among private notes, and notes that are private now, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from lithos.app.stores import utc_now
from lithos.app.style import style_of
from lithos.app.vault import open_notes
from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.config.catalogue import Config
from lithos.core.evaluation.questions import LONGEST_QUESTION, MOST_NAMES, Question
from lithos.core.learning.questions import RememberedQuestion
from lithos.services.retrieve.questions import PRIVATE
from lithos.services.upkeep.forgetting import list_questions
from lithos.services.upkeep.validation import survey_notes
from lithos.stores.lock import is_owned

#: Questions written at most, the newest.
MOST_WRITTEN: Final = 500
#: Entries looked at for them.
_MOST_READ: Final = 20_000


def cited_questions(config: Config) -> list[tuple[Question, str]]:
    """The questions that were asked last, newest first, each with the titles of the cited notes. Blocks.

    Works beside a running server. Raises `FileNotFoundError` without a folder of notes, and what `snapshot`
    raises.
    """
    data = config.storage.data_dir
    fraction = config.index.max_vanished_fraction
    stats: Path = data / ".lithos" / "stats.db"
    remembered = list_questions(stats, _MOST_READ, is_live=is_owned(data / ".lithos" / "lock"))
    if not remembered:
        return []
    style = style_of(config.storage)
    catalogue = survey_notes(data, open_notes(config.storage), fraction, utc_now(), style).catalogue
    found: dict[tuple[str, str], Question] = {}
    titles: dict[tuple[str, str], list[str]] = {}
    for entry in remembered:
        note = _shown(entry, catalogue)
        if note is None:
            continue
        words = " ".join(entry.question.split())
        asked = Question(question=words, expect=(note.note.id,))
        known = found.get(asked.key)
        if known is None and len(found) >= MOST_WRITTEN:
            continue
        if known is not None and len(known.expect) >= MOST_NAMES:
            continue
        named = (*known.expect, note.note.id) if known else asked.expect
        found[asked.key] = attrs.evolve(known or asked, expect=tuple(dict.fromkeys(named)))
        titles.setdefault(asked.key, []).append(note.note.title)
    return [(question, _remark(titles, key)) for key, question in found.items()]


def _shown(entry: RememberedQuestion, catalogue: Catalogue) -> Entry | None:
    """The cited note; None where it, or the question, must not be written or has gone."""
    is_cited = entry.a > entry.b
    has_words = bool(entry.question.strip()) and len(entry.question) <= LONGEST_QUESTION
    if entry.is_private or not is_cited or not has_words:
        return None
    note = catalogue.get(entry.note_id)
    return None if note is None or note.note.access_scope == PRIVATE else note


def _remark(titles: Mapping[tuple[str, str], list[str]], key: tuple[str, str]) -> str:
    return ", ".join(dict.fromkeys(titles[key]))[:200]
