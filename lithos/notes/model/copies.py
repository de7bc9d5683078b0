"""Conflict copies: the file names that synchronisation programs give them, and how Lithos recognises them.

When two machines change one note, a synchronisation program keeps the losing version next to the note as a
second file. Lithos recognises this file by both its name and its content (docs/spec/copies.md §1), because
people may choose such names too. The names of Syncthing, Dropbox, Nextcloud and Obsidian Sync are
unmistakable. The names of OneDrive, iCloud and Google Drive are weak: people use them too, so the file counts
as a note unless its content proves that it is a copy.
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
#: Maximum number of bytes in a file name on any file system.
_LONGEST_NAME: Final = 255
#: Maximum depth of copies of copies, and maximum number of hyphens that are checked as the start of a host
#: name.
_DEEPEST: Final = 8
_MOST_HYPHENS: Final = 8

_SYNCTHING: Final = re.compile(r"\.sync-conflict-\d{8}-\d{6}(?:-[A-Z0-9]{7})?\Z")
_DAY: Final = r"\d{4}-\d{2}-\d{2}"
#: Matches the text inside the brackets. ownCloud adds the user name. Newer versions add a number if several
#: copies are made in the same second.
_NEXTCLOUD: Final = re.compile(rf"conflicted copy(?: .+)? {_DAY} \d{{6}}(?: \d+)?\Z", re.IGNORECASE)
_OBSIDIAN: Final = re.compile(r"conflicted copy .+ \d{12}\Z", re.IGNORECASE)
_DATED: Final = re.compile(rf"(?<!\d){_DAY}(?: \(\d+\))?\Z")
#: "Conflicted copy" in the languages of the Dropbox client, in lower case.
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
#: Matches a host name. Numbers and dates are not host names.
_HOST: Final = re.compile(r"(?=[\d-]*[^\W\d_])[^\W_][\w-]{0,62}\Z")

#: Frontmatter key by which a person declares that a file is a note, not a conflict copy.
OWN_NOTE_KEY: Final = "conflict_copy"
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
#: Maximum number of file names to check when following copies of copies back to the note.
_MOST_NAMES: Final = 100
_HEADING: Final = re.compile(r"#{1,6}\s")
_LETTER: Final = re.compile(r"[^\W_]")

#: Shares of lines that a copy must have in common with one version of its note. The first applies to
#: unmistakable names, the second to weak names.
MOST_LINES: Final = 0.5
NEARLY_ALL: Final = 0.8
#: Minimum share of common lines of two texts, if each text has `NEARLY_ALL` of its lines in common with a
#: third text. The two texts share at least 0.6 of the third text's lines, and the third text has at least 0.8
#: of their length: 0.6 * 0.8.
LEAST_COMMON: Final = 0.48


@frozen
class CopyName:
    """A file name of a conflict copy, with the `program` that made the copy and the `original` file.

    `is_weak` means that people also choose such file names.
    """

    original: str
    program: str
    is_weak: bool = False


def copy_names(path: str) -> tuple[CopyName, ...]:
    """Return the files that `path` may be a conflict copy of.

    Only the name of the file is checked, and the most likely original is first.

    A copy of a copy also counts as a copy of the first original. The result has at most about twenty items,
    and the time is linear in the length of the name.
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
    """Return whether the name of a file with the note's id marks the file as a conflict copy of `original`.

    The note may have been moved since the copy was made. In that case an unmistakable name is sufficient
    proof. A weak name counts only if the id is a UUID, because Lithos generates UUIDs and people write other
    ids.
    """
    if any(not each.is_weak for each in copy_names(path)):
        return True
    return _UUID.fullmatch(note_id) is not None and is_named_after(path, original)


def is_named_after(path: str, original: str) -> bool:
    """Return whether a file is named as a conflict copy of `original`, directly or through another copy."""
    return any(each.original == original for each in all_copy_names(path))


def all_copy_names(path: str) -> Iterator[CopyName]:
    """Yield the possible originals of a file, nearest first, including originals of copies of copies.

    If the name of a copy or the name of its original is weak, the result is weak too.
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
    """Return whether a name has the ending of a conflict copy from a program that appends no host name."""
    return may_be_strong(path) or _NUMBERED.search(path.removesuffix(_SUFFIX)) is not None


def is_weakly_named(path: str, original: str) -> bool:
    """Return whether only a weak name, which people also use, marks a file as a copy of `original`."""
    exact = [each for each in all_copy_names(path) if each.original == original]
    return all(each.is_weak for each in exact or copy_names(path))


def says_own_note(values: Mapping[str, Any]) -> bool:
    """Return whether the frontmatter declares its file as a separate note (`conflict_copy: false`)."""
    return str(values.get(OWN_NOTE_KEY, "")).strip().lower() in ("false", "no")


def may_be_strong(path: str) -> bool:
    """Return whether a name can be an unmistakable name of a conflict copy.

    `may_be_strong` quickly excludes nearly all names that are not unmistakable names of conflict copies.
    """
    return path.endswith(").md") or ".sync-conflict-" in path


def strong_originals(path: str) -> tuple[str, ...]:
    """Return the originals of a file with an unmistakable conflict copy name.

    The result is empty for other names.
    """
    if not may_be_strong(path):
        return ()
    return tuple(each.original for each in copy_names(path) if not each.is_weak)


def _names(stem: str, depth: int) -> Iterator[CopyName]:
    """Yield the possible originals of a file name. `stem` and the originals have no suffix."""
    found = _strong(stem)
    if found is not None:
        yield found
        if depth:
            yield from _deeper(found, depth)
        return
    for weak in _weak(stem):
        yield weak
        # If the name of a copy was already taken, the program added a number, as in `NAME (Ann's conflicted
        # copy 2026-01-02) (1)`.
        deeper = _strong(weak.original) if depth else None
        if deeper is not None:
            yield deeper
            yield from _deeper(deeper, depth)


def _deeper(found: CopyName, depth: int) -> Iterator[CopyName]:
    for each in _names(found.original, depth - 1):
        yield evolve(each, program=found.program, is_weak=each.is_weak)


def _strong(stem: str) -> CopyName | None:
    """Return the original and the program of an unmistakable copy name, or None."""
    if stem.endswith(")"):
        return _in_brackets(stem)
    mark = _SYNCTHING.search(stem)
    return CopyName(stem[: mark.start()], SYNCTHING) if mark is not None and mark.start() else None


def _in_brackets(stem: str) -> CopyName | None:
    """Return the copy name if the stem ends with a conflict remark in brackets, or None.

    The remark may itself contain brackets in a host name.
    """
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
    """Return the position of the bracket that the last character closes, or -1 if no bracket matches."""
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


#: The lines of a text, with the number of occurrences of each line.
LineCounts = Counter[str]


def lines_of(data: bytes) -> LineCounts:
    """Return the non-blank lines of a note's body, without trailing spaces.

    The frontmatter is left out, because notes from one template share most of it. If the bytes are not text,
    the result is empty.
    """
    try:
        body = read_layout(data).body
    except UnreadableNote:
        return Counter()
    return Counter(line for each in body.split("\n") if (line := each.rstrip()))


#: Function that returns only the given lines that do not occur in other notes. No template explains such
#: lines.
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
    """Return whether a file is the conflict copy that its name suggests.

    `named_id` is the id in the file, or None.

    If the file contains an id, the id alone decides. Otherwise the lines of the copy, of the original and of
    its `kept` versions decide. `kept` is read only until a version proves the copy. With an unmistakable
    name, more than half of the copy's lines must occur in one version. With a weak name, one version must
    share four fifths of the lines with both texts. In that case, the copy must also contain a line that
    proves its origin: the line is in this version, is no longer in the original, and occurs in no other note.
    """
    if named_id is not None:
        return named_id == note_id
    if not copy:
        return False
    if not name.is_weak:
        return any(_shared(copy, each) > MOST_LINES * copy.total() for each in chain((original,), kept))
    # Two texts that each share four fifths of the lines of a version share at least three fifths of these
    # lines with one another. A lower share therefore rules out all versions without reading any of them.
    if _shared(copy, original) < LEAST_COMMON * max(copy.total(), original.total()):
        return False
    return any(_is_proven(copy, original, each, unexplained) for each in kept)


def _is_proven(copy: LineCounts, original: LineCounts, version: LineCounts, unexplained: Unexplained) -> bool:
    """Return whether `copy` and `original` both descend from `version`.

    The proof is a line that is in the copy and the version, but no longer in the original.

    A line that the original still contains is not a proof, because people also create new pages by copying a
    page.
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
    """Return whether a line is more than a heading, a label without a value, or punctuation."""
    text = line.strip()
    return not text.endswith(":") and not _HEADING.match(text) and _LETTER.search(text) is not None


def _shared(one: LineCounts, other: LineCounts) -> int:
    """Return the number of lines that two texts have in common.

    A repeated line counts as often as it occurs in both texts.
    """
    few, many = (one, other) if len(one) <= len(other) else (other, one)
    return sum(min(count, many[line]) for line, count in few.items() if line in many)


def _are_near(one: LineCounts, other: LineCounts) -> bool:
    return _shared(one, other) >= NEARLY_ALL * max(one.total(), other.total(), 1)
