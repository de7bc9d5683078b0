"""Checks of note contents: warnings, links, near duplicates and use (docs/spec/copies.md §5).

The checks are read-only. They get a `CareRun`. The checks that `lithos doctor` also runs accept an
`Installed` too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from heapq import nlargest
from operator import itemgetter
from typing import Final, TypeAlias

import numpy as np

from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.values.findings import (
    CARE,
    DOCTOR,
    OVERVIEW,
    SYSTEM,
    Issue,
    Look,
    NamedNote,
    Severity,
    check,
    has_data,
    name_some,
)
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.links.links import file_alias
from lithos.notes.model.note import WarningKind
from lithos.search.index.vectors import VectorIndex
from lithos.search.indexing.semantic import SemanticUnavailable
from lithos.search.service.duplicates import read_bodies
from lithos.tasks.rows.tasks import TaskRows
from lithos.text.hidden_text import hide, without_hidden
from lithos.text.markdown import visible_text
from lithos.text.words.similarity import LOOKED_AT, STRONG, Pairs, Templates, clusters, likeness, word_pairs
from lithos.upkeep.checks.care import AT_ONCE, CareRun, about, entries_of, in_slices, named_of
from lithos.upkeep.checks.checks import Installed
from lithos.upkeep.model.likely_targets import LikelyNotes, words_of

#: Input of checks that need only the note catalogue. `lithos doctor` passes an `Installed`.
Subject: TypeAlias = CareRun | Installed
#: A pair of note ids, in ascending order.
Both: TypeAlias = tuple[str, str]

#: Number of passages to search for in addition to a note's mean vector, number of notes requested for each
#: passage, and number of closest notes to compare.
PASSAGES, NEAREST, CLOSEST = 3, 8, 5
#: Maximum size of a small cluster. Small clusters are listed before larger clusters.
FEW: Final = 3
#: Maximum number of notes to compare for near duplicates. The most recently changed notes are preferred.
COMPARED: Final = 30_000
#: Maximum number of broken link targets for which the check suggests a likely note.
LINKS: Final = 2_000
#: Word count below which a text is a stub, and maximum size in bytes of the files to check.
STUB_WORDS, STUB_BYTES = 15, 2_000
#: Number of access records to read in one query.
PAGE: Final = 20_000


#: Severity, heading and advice of each check. The most useful checks come first.
_TEXTS: Final[Mapping[str, tuple[Severity, str, str]]] = {
    "broken": ("error", "Unreadable files and frontmatter",
        "Correct the file, or the frontmatter between the --- lines, whose keys are ignored. `lithos "
        "validate` lists all these files."),
    "quarantined": ("warning", "Quarantined notes",
        "Quarantined notes are left out of retrieval until a person clears them."),
    "duplicated": ("warning", "Notes with a second file",
        "Copy what you need from the second file into the note, then remove the file. Or give the file its "
        "own id with `lithos validate --fix ids`."),
    "conflict_copies": ("warning", "Notes with a conflict copy",
        "Merge the copy on the console page Copies or with `lithos conflicts`, or keep it as a separate "
        "note."),
    "conflict_markers": ("warning", "Notes with a git conflict",
        "Keep one side or both, and remove the lines <<<<<<<, ======= and >>>>>>>."),
    "contradicted": ("warning", "Contradictions", "Decide which note is right with lithos_conflict_resolve."),
    "suspect": ("warning", "Suspect notes",
        "The sources of these notes are quarantined or superseded. Verify the notes again, or base them "
        "on other notes."),
    "expired": ("warning", "Expired notes", "Update these notes with a later expiry time, or archive them."),
    "superseded": ("info", "Superseded notes", "A newer note replaces each of these notes."),
    "dead_links": ("warning", "Links without a target", "Correct the target, or write the missing note."),
    "duplicates": ("info", "Near duplicates", "Merge these notes into one note that supersedes the others."),
    "stubs": ("info", "Stubs", "Write the missing text, or delete the note."),
    "unlinked": ("info", "Notes without any link", "Link these notes from a related note."),
    "unused": ("info", "Not used", "Archive notes that are no longer needed."),
}  # fmt: skip


def _told(name: str, *views: str) -> Callable[[Look], Look]:
    """Return a decorator that registers a check function with its texts."""
    severity, title, way_out = _TEXTS[name]
    place = 500 + list(_TEXTS).index(name)
    texts = {"title": title, "way_out": way_out}
    return check(name, *views, place=place, severity=severity, when=has_data, **texts)


@_told("broken", CARE, DOCTOR, SYSTEM)
async def _broken(notes: Subject) -> AsyncIterator[Issue]:
    """Yield notes with unreadable frontmatter, and files that cannot be served.

    Additional files of a note are left out.
    """
    catalogue = notes.catalogue
    found = filter(None, map(catalogue.get, catalogue.broken))
    async for entry in in_slices(sorted(found, key=lambda each: each.path)):
        yield about(str(entry.note.frontmatter_problem), named_of(entry))
    async for path, skipped in in_slices(sorted(catalogue.skipped.items(), key=itemgetter(0))):
        if skipped.note_id is None:
            named = NamedNote(None, path.rpartition("/")[2].removesuffix(".md"), path)
            yield about(skipped.reason, named)


async def _with_others(
    detail: str, others: Callable[[Catalogue, str], Sequence[str]], notes: Subject
) -> AsyncIterator[Issue]:
    """Yield each note with additional files, and name these files."""
    async for note_id in in_slices(sorted(notes.catalogue.doubles)):
        entry, paths = notes.catalogue.get(note_id), others(notes.catalogue, note_id)
        if entry is not None and paths:
            yield about(f"{detail} {name_some(paths)}", named_of(entry))


_told("duplicated", OVERVIEW, DOCTOR, SYSTEM)(
    partial(_with_others, "another file has the same id and is not served:", Catalogue.duplicates_of)
)
_told("conflict_copies", CARE, OVERVIEW, DOCTOR, SYSTEM)(
    partial(
        _with_others,
        "two machines changed the note; the version of one machine is in",
        Catalogue.copy_paths_of,
    )
)


@_told("conflict_markers", CARE, OVERVIEW, DOCTOR, SYSTEM)
async def _conflict_markers(notes: Subject) -> AsyncIterator[Issue]:
    async for entry in entries_of(notes.catalogue):
        if entry.note.has_conflict_markers:
            yield about("git left conflict markers in the text, <<<<<<< to >>>>>>>", named_of(entry))


async def _warned(kind: WarningKind, notes: CareRun) -> AsyncIterator[Issue]:
    async for issue in in_slices((await notes.warned()).get(kind, ())):
        yield issue


_told("quarantined", OVERVIEW)(partial(_warned, "quarantined"))
_told("contradicted", CARE)(partial(_warned, "contradicted"))
_told("suspect", CARE, OVERVIEW)(partial(_warned, "suspect"))
_told("expired", CARE, OVERVIEW)(partial(_warned, "expired"))
_told("superseded", OVERVIEW)(partial(_warned, "superseded"))


@_told("dead_links", CARE)
async def _dead_links(notes: CareRun) -> AsyncIterator[Issue]:
    """Yield broken link targets.

    Targets with a likely note come first, then the targets that most notes use.
    """
    catalogue, graph = notes.catalogue, notes.catalogue.graph
    broken = sorted(graph.broken_targets())
    if not broken:
        return
    likely, found = LikelyNotes(), list[Issue]()
    async for entry in notes.entries():
        likely.add(named_of(entry), (entry.note.title, file_alias(entry.path), *entry.note.aliases))
    meant = await notes.aside(lambda targets: [*map(likely.find, targets)], broken[:LINKS], 1)
    async for place, target in in_slices(enumerate(broken)):
        writers = filter(None, map(catalogue.get, graph.writers_of(target)))
        named = [named_of(each) for each in sorted(writers, key=lambda each: each.path)[:10]]
        note = meant[place] if place < LINKS else None
        hint = "" if note is None else f"; {note.path} may be meant"
        found.append(about(f"[[{target[:200]}]] leads nowhere{hint}", *named, link=target, likely=note))
    async for issue in in_slices(sorted(found, key=lambda each: (each.likely is None, -len(each.notes)))):
        yield issue


@_told("stubs", CARE)
async def _stubs(notes: CareRun) -> AsyncIterator[Issue]:
    small = [entry async for entry in notes.active() if entry.state.size <= STUB_BYTES]
    words = await notes.aside(partial(_count_words, notes), small)
    for entry, number in zip(small, words, strict=True):
        if number is not None and number < STUB_WORDS:
            yield about(f"{number} words" if number else "no text", named_of(entry))


def _count_words(notes: CareRun, entries: Sequence[Entry]) -> list[int | None]:
    texts = read_bodies(notes.parts.files, entries)
    return [None if text is None else len(words_of(visible_text(text))) for text in texts]


@_told("unlinked", CARE)
async def _unlinked(notes: CareRun) -> AsyncIterator[Issue]:
    links = notes.catalogue.graph.links
    async for entry in notes.active():
        if not any(map(len, links.neighbours(entry.note.id))) and not entry.note.derived_from_ids:
            yield about("no note links to this note, and it links to no other note", named_of(entry))


@_told("unused", CARE)
async def _unused(notes: CareRun) -> AsyncIterator[Issue]:
    """Yield active notes that were not changed, read or cited within the configured number of days."""
    since, used = notes.now - timedelta(days=notes.parts.settings.days), set[str]()
    store, reading = notes.parts.journal, notes.parts.reading
    try:
        at, place = -1, 0
        while place != at:
            at = place
            read, place = await reading.run(partial(store.read_after, at, since, PAGE))
            used |= read
        used |= await reading.run(lambda: store.rows(TaskRows).impact.cited_since(since))
    except DatabaseFailed as failure:
        notes.troubles.append(f"The usage of notes could not be read: {failure}")
        return
    async for entry in notes.active():
        if entry.note.id not in used and entry.note.updated_at < since:
            why = f"not changed since {entry.note.updated_at:%Y-%m-%d}, and neither read nor cited since"
            yield about(why, named_of(entry))


@_told("duplicates", CARE)
async def _near_duplicates(notes: CareRun) -> AsyncIterator[Issue]:
    """Yield clusters of notes that have most of their word pairs in common.

    Small clusters come first, sorted by decreasing similarity.
    """
    catalogue = notes.catalogue
    try:
        vectors = notes.parts.semantic.static_vectors()
    except SemanticUnavailable as problem:
        notes.troubles.append(f"Near duplicates were not searched for: {problem}")
        return
    shares = await _alike(notes, await _candidates(notes, vectors))
    best: dict[str, float] = {}
    for pair, share in shares.items():
        best |= {each: max(share, best.get(each, 0.0)) for each in pair}
    groups = [(max(map(best.__getitem__, group)), group) for group in clusters(shares)]
    # Small clusters come first. Two duplicates are quick to merge, and a large cluster is more likely a list
    # of similar notes.
    for share, group in sorted(groups, key=lambda row: (len(row[1]) > FEW, -row[0], row[1])):
        named = map(named_of, filter(None, map(catalogue.get, group[:20])))
        yield about(f"the notes share up to {share:.0%} of their neighbouring words", *named)


async def _candidates(notes: CareRun, vectors: VectorIndex) -> dict[Both, tuple[Entry, Entry]]:
    """Return pairs of active notes that have similar vectors and may be duplicates."""
    entries = [entry async for entry in notes.active()]
    entries.sort(key=lambda entry: entry.note.updated_at, reverse=True)
    if len(entries) > COMPARED:
        notes.troubles.append(
            f"Near duplicates were searched for only among the {COMPARED:,} most recently changed notes."
        )
    found: dict[Both, tuple[Entry, Entry]] = {}
    near = await notes.aside(partial(_nearest, vectors), entries[:COMPARED])
    async for entry, serials in in_slices(zip(entries, near, strict=False)):
        for other in filter(None, map(notes.catalogue.at_serial, serials)):
            if _may_repeat(entry, other):
                first, second = sorted((entry.note.id, other.note.id))
                found[first, second] = entry, other
    return found


def _nearest(vectors: VectorIndex, entries: Sequence[Entry]) -> list[list[int]]:
    found: list[list[int]] = []
    for entry in entries:
        own = vectors.passages_of(entry.serial, PASSAGES)
        near = {hit.serial for hits in vectors.nearest_by_mean(own, NEAREST) for hit in hits}
        close = vectors.closeness(own, near - {entry.serial})
        found.append(nlargest(CLOSEST, close, key=close.__getitem__))
    return found


def _may_repeat(one: Entry, other: Entry) -> bool:
    """Return whether the other note is active, and neither note supersedes the other or derives from it."""
    is_settled = any(
        its.id in (mine.supersedes, *mine.derived_from_ids)
        for mine, its in ((one.note, other.note), (other.note, one.note))
    )
    return other.note.status == "active" and not is_settled


async def _alike(notes: CareRun, pairs: Mapping[Both, tuple[Entry, Entry]]) -> dict[Both, float]:
    """Return the pairs of notes with enough common words, and the common share of each pair.

    Template text is ignored, even if notes with the same template are in different folders.
    """
    entries = list({entry.note.id: entry for pair in pairs.values() for entry in pair}.values())
    known: dict[str, Pairs] = {}
    for start in range(0, len(entries), AT_ONCE):
        some = entries[start : start + AT_ONCE]
        await notes.parts.texts.frames.learn(some)  # for a few folders: it forgets the others
        known |= await notes.thread.run(partial(_word_pairs, notes, some))
    found = await notes.aside(partial(_shares, known, likeness), list(pairs), 10 * AT_ONCE)
    if not found:
        return {}
    both = [pair for pair, _ in found]
    templates = await notes.thread.run(partial(_templates_of, both, known))
    return dict(await notes.aside(partial(_shares, known, templates.likeness), both, 10 * AT_ONCE))


def _word_pairs(notes: CareRun, entries: Sequence[Entry]) -> dict[str, Pairs]:
    """Return the word pairs of each note, without text that most notes of its folder share. Blocks."""
    known: dict[str, Pairs] = {}
    for entry, text in zip(entries, read_bodies(notes.parts.files, entries), strict=True):
        if text is not None:
            shown = without_hidden(hide(text[:LOOKED_AT], notes.parts.texts.frames.of(entry)))
            known[entry.note.id] = word_pairs(shown)
    return known


def _shares(
    known: Mapping[str, Pairs], alike: Callable[[Pairs, Pairs], float], pairs: Iterable[Both]
) -> list[tuple[Both, float]]:
    """Return the pairs of notes with a common share of at least `STRONG`, and the share of each pair."""
    both = [pair for pair in pairs if pair[0] in known and pair[1] in known]
    shares = ((pair, alike(known[pair[0]], known[pair[1]])) for pair in both)
    return [(pair, share) for pair, share in shares if share >= STRONG]


def _templates_of(alike: Sequence[Both], known: Mapping[str, Pairs]) -> Templates:
    """Return the word pairs that similar notes have in common, and the notes that contain each word pair."""
    shared = (np.intersect1d(known[one], known[other], assume_unique=True) for one, other in alike)
    return Templates.of(known, np.unique(np.concatenate(list(shared))))
