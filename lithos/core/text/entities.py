"""Named-entity extraction from notes: heuristics only, no model, no network (docs/spec/memory.md §4)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations, pairwise
from typing import Final

from attrs import frozen

from lithos.core.notes.model import Note
from lithos.core.text.entity_phrases import Mentions, count_mentions
from lithos.core.text.entity_text import MOST_WORDS, is_code_name, is_entity, is_link_name, read_body

#: Which rules extracted the entities of a note; raise it whenever they change.
MARKER: Final = 11
_SEEN_AT_LEAST: Final = 2


@frozen
class Found:
    """What extraction found in a note, as it is kept outside of the note's file.

    `extractor` is the marker of the rules, `source` the hash of the file's bytes. `instead_of` is the digest
    of the entities that a machine wrote into the file and that these replace, empty where there are none.
    """

    entities: tuple[str, ...]
    extractor: int
    source: str
    instead_of: str = ""

    def counts_for(self, note: Note) -> bool:
        """False where the file has entities that a person chose."""
        return not note.entities or is_machine_made(note, self.instead_of)


def is_machine_made(note: Note, digest: str | None) -> bool:
    """Whether the file has just the entities of this digest, under a marker."""
    return note.entities_extractor is not None and digest == digest_entities(note.entities)


def digest_entities(entities: Iterable[str]) -> str:
    """A short name for these entities in this order."""
    return hashlib.blake2b(json.dumps(list(entities)).encode(), digest_size=16).hexdigest()


def is_stale(note: Note) -> bool:
    """True for entities that older rules found, also when they found none."""
    return note.entities_extractor is not None and note.entities_extractor < MARKER


def may_extract(note: Note, *, force: bool = False) -> bool:
    """False for a note that stays as it is whatever its text says: curated, or extracted by these rules."""
    return force or not note.entities or is_stale(note)


def decide_extraction(note: Note, content: str, limit: int, *, force: bool = False) -> tuple[str, ...] | None:
    """What to store as the note's entities, with the current marker; None leaves the note as it is.

    Entities without a marker were chosen by a person. `force` extracts them too, and those of the
    current marker, but never replaces a person's choice by nothing.
    """
    if not may_extract(note, force=force):
        return None
    found, marker = extract_entities(content, limit), note.entities_extractor
    if is_stale(note):
        return found
    if not found:
        return () if note.entities and marker is not None else None
    return None if found == note.entities and marker == MARKER else found


def extract_entities(body: str, limit: int) -> tuple[str, ...]:
    """The names in a body, sorted, each once; at most `limit` by frequency, 0 is all.

    Takes time in proportion to the length of the body.
    """
    text = read_body(body)
    mentions = count_mentions(text.prose, text.labels)
    links = Counter(target for target in map(_page, text.links) if is_link_name(target))
    found: Counter[str] = Counter({name: count + mentions.seen[name] for name, count in links.items()})
    found |= _one_spelling(_named(text.code, mentions), {name.casefold() for name in links})
    contained = _contained(found)
    kept = {name: count for name, count in found.items() if name in links or name.casefold() not in contained}
    return tuple(sorted(_most_frequent(kept, links, limit)))


def _page(target: str) -> str:
    """The note that a link target means, without the anchor in it."""
    page, anchor, _ = target.partition("#")
    return page.strip() if anchor and page.strip() and not target.endswith("#") else target


def _one_spelling(names: Mapping[str, int], taken: set[str]) -> Counter[str]:
    """Of names that differ in case only, the most frequent one with all mentions, unless it is `taken`."""
    kept: dict[str, str] = {}
    total: Counter[str] = Counter()
    for name in sorted(names, key=lambda name: (-names[name], name)):
        folded = name.casefold()
        if folded not in taken:
            total[kept.setdefault(folded, name)] += names[name]
    return total


def _named(code: Iterable[str], mentions: Mentions) -> Mapping[str, int]:
    """Names that are no link targets, with the number of mentions; of code what prose has, too."""
    names = Counter(" ".join(span.split()) for span in code)
    counts = {
        name: count + mentions.seen[name]
        for name, count in names.items()
        if mentions.seen[name] and is_code_name(name)
    }
    for name, count in mentions.products.items():
        if is_entity(name):
            counts[name] = counts.get(name, 0) + count
    for name in mentions.inside.keys() - counts.keys() - mentions.products.keys():
        if _is_supported(name, mentions) and is_entity(name):
            counts[name] = mentions.seen[name]
    return counts


def _is_supported(name: str, mentions: Mentions) -> bool:
    """A phrase needs one mention inside a sentence, a single word two; neither may be written small, too."""
    if " " in name:
        pairs = set(map(" ".join, pairwise(name.casefold().split())))
        return not pairs <= mentions.lower_pairs
    return mentions.seen[name] >= _SEEN_AT_LEAST and mentions.lower[name.casefold()] < mentions.inside[name]


def _contained(names: Iterable[str]) -> set[str]:
    """Everything, casefolded, that is a word or a run of words within one of the names."""
    inner: set[str] = set()
    for name in names:
        words = name.casefold().split()[: 2 * MOST_WORDS]
        inner.update(
            " ".join(words[begin:end])
            for begin, end in combinations(range(len(words) + 1), 2)
            if end - begin < len(words)
        )
    return inner


def _most_frequent(counts: Mapping[str, int], links: Mapping[str, int], limit: int) -> Iterable[str]:
    """The names with the highest counts; among equals link targets first, then in order."""
    if not limit or len(counts) <= limit:
        return counts
    return sorted(counts, key=lambda name: (-counts[name], name not in links, name))[:limit]
