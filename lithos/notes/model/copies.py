"""Conflict copies: the names that synchronising programs give them, and their kinship with a note.

When two machines changed one note, such a program keeps the losing version next to it as a second file. It is
recognised by its name and its kinship together (docs/spec/copies.md §1), since anyone may choose such a name.
Names of Syncthing, Dropbox, Nextcloud and Obsidian Sync are unmistakable. Those of OneDrive, iCloud and
Google Drive are weak: people use them too, so such a file is a note unless something proves that it is a
copy.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

from attrs import evolve, frozen

from lithos.text.words.analysis import normalise
from lithos.text.yaml.layout import read_layout
from lithos.text.yaml.nodes import UnreadableNote

SYNCTHING: Final = "Syncthing"
DROPBOX: Final = "Dropbox"
NEXTCLOUD: Final = "Nextcloud"
OBSIDIAN: Final = "Obsidian Sync"
ICLOUD: Final = "iCloud"
DRIVE: Final = "Google Drive"
ONEDRIVE: Final = "OneDrive"

_SUFFIX: Final = ".md"
#: Bytes of a name on any file system; no program gives longer ones.
_LONGEST_NAME: Final = 255
#: Copies of copies that are followed, and hyphens from the end at which a host name may begin.
_DEEPEST: Final = 8
_MOST_HYPHENS: Final = 8

_SYNCTHING: Final = re.compile(r"\.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]{7})?\Z")
_DAY: Final = r"\d{4}-\d{2}-\d{2}"
#: Inside of the brackets; ownCloud names the user, newer ones number copies of one second.
_NEXTCLOUD: Final = re.compile(rf"conflicted copy(?: .+)? {_DAY} \d{{6}}(?: \d+)?\Z", re.IGNORECASE)
_OBSIDIAN: Final = re.compile(r"conflicted copy .+ \d{12}\Z", re.IGNORECASE)
_DATED: Final = re.compile(rf"(?<!\d){_DAY}(?: \(\d+\))?\Z")
#: "Conflicted copy" in the languages of Dropbox, in lower case.
DROPBOX_WORDS: Final = (
    "conflicted copy", "in konflikt stehende kopie", "copie en conflit", "copie conflictuelle",
    "copia en conflicto", "copia in conflitto", "copia conflittuale", "cópia em conflito",
    "cópia conflitante", "conflicterende kopie", "kopia powodująca konflikt",
    "kopia będąca w konflikcie", "kopia z konfliktem", "konfliktująca kopia", "конфликтующая копия",
    "конфліктна копія", "競合コピー", "競合するコピー", "冲突副本", "冲突的副本", "衝突複本", "衝突副本",
    "충돌 사본", "충돌된 사본", "motstridiga kopia", "kopia i konflikt", "konfliktkopia", "konfliktkopi",
    "motstridende kopi", "modstridende kopi", "kopi i konflikt", "konfliktní kopie", "çakışan kopya",
    "salinan yang berkonflik", "salinan konflik", "salinan bercanggah", "สำเนาที่ขัดแย้งกัน",
)  # fmt: skip
_NUMBERED: Final = re.compile(r" (?:[2-9]|[1-9]\d{1,2})\Z")
_BRACKETED: Final = re.compile(r" ?\([1-9]\d{0,2}\)\Z")
#: No number and no date.
_HOST: Final = re.compile(r"(?=[\d-]*[^\W\d_])[^\W_][\w-]{0,62}\Z")

#: The key by which a person marks a file as a note of its own, not a conflict copy.
OWN_NOTE_KEY: Final = "conflict_copy"
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
#: Names looked at on the way from a copy of a copy to the note.
_MOST_NAMES: Final = 100
_HEADING: Final = re.compile(r"#{1,6}\s")
_LETTER: Final = re.compile(r"[^\W_]")

#: The part of its lines that a copy shares with a kept version of its note.
MOST_LINES: Final = 0.5
NEARLY_ALL: Final = 0.8
#: Share that two texts have in common if each is close to a third: 0.6 of its lines, which are 0.8 of theirs.
LEAST_COMMON: Final = 0.48


@frozen
class CopyName:
    """A file name of a conflict copy: the copy of `original`, made by `program`.

    `is_weak`: people give such names, too.
    """

    original: str
    program: str
    is_weak: bool = False


def copy_names(path: str) -> tuple[CopyName, ...]:
    """Return the originals whose conflict copy a file may be by its name, the likeliest first.

    A copy of a copy is one of the original as well. At most some twenty, in time linear in the name.
    """
    folder, slash, name = path.rpartition("/")
    if not name.endswith(_SUFFIX) or len(name) > _LONGEST_NAME:
        return ()
    prefix = folder + slash
    return tuple(
        evolve(each, original=f"{prefix}{each.original}{_SUFFIX}")
        for each in _names(name.removesuffix(_SUFFIX), _DEEPEST)
    )


def is_copy_of(path: str, original: str, note_id: str) -> bool:
    """Return whether a file that has the id of the note at `original` is by its name a conflict copy of it.

    The note may have been moved since; then only a name that no person gives is proof. Under a name that
    people give, an id is proof only if it is a UUID, as Lithos generates them: any other id is a word of
    theirs.
    """
    if any(not each.is_weak for each in copy_names(path)):
        return True
    return _UUID.fullmatch(note_id) is not None and is_named_after(path, original)


def is_named_after(path: str, original: str) -> bool:
    """Return whether a file is named as a conflict copy of the one at `original`, or as a copy of such a
    copy.
    """
    return any(each.original == original for each in all_copy_names(path))


def all_copy_names(path: str) -> Iterator[CopyName]:
    """Return the originals whose copy a file may be by its name, including copies of copies, the nearest
    first.

    A copy of a copy has a weak name if either has.
    """
    known, waiting = {path}, deque([(path, False)])
    while waiting and len(known) < _MOST_NAMES:
        each, is_weak = waiting.popleft()
        for name in copy_names(each):
            if name.original not in known:
                known.add(name.original)
                found = evolve(name, is_weak=True) if is_weak and not name.is_weak else name
                if name.program != ONEDRIVE or _has_mark(name.original):
                    waiting.append((found.original, found.is_weak))
                yield found


def _has_mark(path: str) -> bool:
    """Return whether a name ends like a copy's of another program; where a host name may begin is known by
    then.
    """
    return may_be_strong(path) or _NUMBERED.search(path.removesuffix(_SUFFIX)) is not None


def is_weakly_named(path: str, original: str) -> bool:
    """Return whether people, too, give a file the name that says it is a conflict copy of the note at
    `original`.
    """
    exact = [each for each in all_copy_names(path) if each.original == original]
    return all(each.is_weak for each in exact or copy_names(path))


def says_own_note(values: Mapping[str, Any]) -> bool:
    """Return whether a frontmatter marks its file as a note of its own: `conflict_copy: false`."""
    return str(values.get(OWN_NOTE_KEY, "")).strip().lower() in ("false", "no")


def may_be_strong(path: str) -> bool:
    """Return False at once for nearly all names that are not those of copies which only programs name."""
    return path.endswith(").md") or ".sync-conflict-" in path


def strong_originals(path: str) -> tuple[str, ...]:
    """Return the originals whose copy a file is by a name that only programs give."""
    if not may_be_strong(path):
        return ()
    return tuple(each.original for each in copy_names(path) if not each.is_weak)


def _names(stem: str, depth: int) -> Iterator[CopyName]:
    """Yield the originals of a name without suffix, also without one."""
    found = _strong(stem)
    if found is not None:
        yield found
        if depth:
            yield from _deeper(found, depth)
        return
    for weak in _weak(stem):
        yield weak
        # For a copy whose name was in use: `NAME (Ann's conflicted copy 2026-01-02) (1)`.
        deeper = _strong(weak.original) if depth else None
        if deeper is not None:
            yield deeper
            yield from _deeper(deeper, depth)


def _deeper(found: CopyName, depth: int) -> Iterator[CopyName]:
    for each in _names(found.original, depth - 1):
        yield evolve(each, program=found.program, is_weak=each.is_weak)


def _strong(stem: str) -> CopyName | None:
    """Return the copy name in a file name that only a program gives."""
    if stem.endswith(")"):
        return _in_brackets(stem)
    mark = _SYNCTHING.search(stem)
    return CopyName(stem[: mark.start()], SYNCTHING) if mark is not None and mark.start() else None


def _in_brackets(stem: str) -> CopyName | None:
    """The names with a remark in brackets at their end; the name of a machine may have brackets, too."""
    start = _opening(stem)
    if start < 2 or stem[start - 1] != " ":
        return None
    remark, name = stem[start + 1 : -1], stem[: start - 1]
    if _NEXTCLOUD.match(remark):
        return CopyName(name, NEXTCLOUD)
    if _OBSIDIAN.match(remark):
        return CopyName(name, OBSIDIAN)
    folded = normalise("NFC", remark).lower()
    if _DATED.search(remark) and any(words in folded for words in DROPBOX_WORDS):
        return CopyName(name, DROPBOX)
    return None


def _opening(stem: str) -> int:
    """Return the position of the bracket that the last character closes; -1 without one."""
    depth = 0
    for at in range(len(stem) - 1, -1, -1):
        depth += (stem[at] == ")") - (stem[at] == "(")
        if not depth:
            return at
    return -1


def _weak(stem: str) -> Iterator[CopyName]:
    mark = _BRACKETED.search(stem)
    if mark is not None and mark.start():
        yield CopyName(stem[: mark.start()], DRIVE, is_weak=True)
    mark = _NUMBERED.search(stem)
    if mark is not None and mark.start():
        yield CopyName(stem[: mark.start()], ICLOUD, is_weak=True)
    end = len(stem)
    for _ in range(_MOST_HYPHENS):
        end = stem.rfind("-", 1, end)
        if end < 0:
            return
        host = stem[end + 1 :]
        if _HOST.match(host):
            yield CopyName(stem[:end], ONEDRIVE, is_weak=True)


#: The lines of a text, each with how often it occurs.
LineCounts = Counter[str]


def lines_of(data: bytes) -> LineCounts:
    """Return the lines of a note's body that are not blank, without the spaces at their ends.

    The frontmatter does not count: notes made from one template have most of it in common. Bytes that are not
    text have no lines.
    """
    try:
        body = read_layout(data).body
    except UnreadableNote:
        return Counter()
    return Counter(line for each in body.split("\n") if (line := each.rstrip()))


#: Which of some lines are nowhere but in a note and its versions: no template explains them.
Unexplained = Callable[[frozenset[str]], Iterable[str]]


def are_kin(
    name: CopyName,
    named_id: str | None,
    note_id: str,
    copy: LineCounts,
    original: LineCounts,
    kept: Iterable[LineCounts],
    unexplained: Unexplained = lambda lines: lines,
) -> bool:
    """Return whether a file is the conflict copy that its name suggests; `named_id` is the id in it.

    One that names an id is kin by that alone. Else the lines decide, its own and those of the original and of
    its `kept` versions, which are looked at only as far as needed: more than half of the copy's are in one of
    them. Where the name is weak, one has at least four fifths of the lines of both texts, as they have four
    fifths of its, and the copy has a line of it that proves where it began: the original does not say it any
    more, and nothing but that version explains it.
    """
    if named_id is not None:
        return named_id == note_id
    if not copy:
        return False
    if not name.is_weak:
        return any(_shared(copy, each) > MOST_LINES * copy.total() for each in chain((original,), kept))
    # Both have four fifths of some version, and so of each other at least three of each five of its lines.
    if _shared(copy, original) < LEAST_COMMON * max(copy.total(), original.total()):
        return False
    return any(_is_proven(copy, original, each, unexplained) for each in kept)


def _is_proven(copy: LineCounts, original: LineCounts, version: LineCounts, unexplained: Unexplained) -> bool:
    """Return whether two texts began with a version of the one, which the other cannot have but from it.

    A line that the original still says proves nothing: a person makes a new page by copying a page.
    """
    if not (_are_near(copy, version) and _are_near(original, version)):
        return False
    proof = frozenset(
        line
        for line, count in copy.items()
        if min(count, version[line]) > original[line] and _says_something(line)
    )
    return bool(proof) and any(True for _ in unexplained(proof))


def _says_something(line: str) -> bool:
    """Return whether a line is more than a heading, a label without a value, or marks alone."""
    text = line.strip()
    return not text.endswith(":") and not _HEADING.match(text) and _LETTER.search(text) is not None


def _shared(one: LineCounts, other: LineCounts) -> int:
    """Return the number of common lines of two texts, each as often as both have it."""
    few, many = (one, other) if len(one) <= len(other) else (other, one)
    return sum(min(count, many[line]) for line, count in few.items() if line in many)


def _are_near(one: LineCounts, other: LineCounts) -> bool:
    return _shared(one, other) >= NEARLY_ALL * max(one.total(), other.total(), 1)
