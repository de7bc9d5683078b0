"""Named-entity extraction from notes by heuristics, without a model or network (docs/spec/memory.md §4)."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Final

from attrs import define, field, frozen

from lithos.notes.model.entity_text import (
    EDGE,
    MOST_WORDS,
    is_calendar,
    is_code_name,
    is_entity,
    is_filler,
    is_link_name,
    is_opener,
    read_body,
    word_set,
)
from lithos.notes.model.note import Note

#: Maximum number of words in a name. A longer series of capitalised words counts as a headline.
_LONGEST_RUN: Final = 12
#: Maximum number of characters in a word. Longer words count as data.
_LONGEST_WORD: Final = 100
_WORD: Final = re.compile(r"[\w.+#&'’\-]+")
_POSSESSIVE: Final = re.compile(r"(?<=\w)['’](?:[sS]$|$)")
_CONTRACTION: Final = re.compile(r"['’](?:t|ll|ve|re|d|m)$", re.IGNORECASE)
_PRODUCT: Final = re.compile(
    r"(?=[^a-z]|[a-z]{1,2}[A-Z])(?=[^\d]*[A-Z])(?=.*\d)[A-Za-z][A-Za-z0-9]*(?:[-.][A-Za-z0-9]+)*"
    r"|[A-Z][A-Za-z0-9]*\.(?:js|NET|net|io|ai|jl)"
)
#: Small words that may occur inside a name, as in Bank of America or Ludwig van Beethoven.
_PARTICLES: Final = frozenset(("of", "de", "del", "la", "le", "du", "da", "di", "der", "den", "van", "von"))
#: Words that remain in lower case in a title. These words alone do not make a title count as a sentence.
_TITLE_SMALL: Final = _PARTICLES | word_set("a an and as at for from in into on or per the to vs with")
_ABBREVIATIONS: Final = word_set("al approx cf dr e.g eg etc fig i.e ie mr mrs ms no prof st vs")
_CODE_MARKS: Final = "_/\\=<>{}|"
_ENDS: Final = (".", "!", "?")
#: Characters that may follow the punctuation mark at the end of a sentence.
_CLOSING: Final = "\"'’”»)]}*_"
_QUOTES: Final = frozenset("\"'“‘«„")


@define
class Mentions:
    """The number of occurrences of names, in total and inside sentences.

    Words in lower case and pairs of such words are counted separately.
    """

    seen: Counter[str] = field(factory=Counter)
    inside: Counter[str] = field(factory=Counter)
    products: Counter[str] = field(factory=Counter)
    lower: Counter[str] = field(factory=Counter)
    lower_pairs: set[str] = field(factory=set)


@define
class _Token:
    """A word as written.

    `starts` means that the word starts a sentence, and `is_apart` means that the word cannot continue the
    preceding name.
    """

    text: str
    starts: bool
    is_apart: bool


def count_mentions(prose: Sequence[str], labels: Sequence[str]) -> Mentions:
    """Return the names in cleaned text, with the number of times that the text mentions each name."""
    mentions = Mentions()
    sentences = [sentence for block in prose for sentence in _sentences(block)]
    for sentence in sentences:
        mentions.lower.update(token.text for token in sentence if token.text.islower())
        pairs = pairwise(token.text for token in sentence)
        mentions.lower_pairs.update(" ".join(pair) for pair in pairs if all(map(str.islower, pair)))
    for sentence in sentences:
        is_title = not any(t.text.islower() and t.text not in _TITLE_SMALL for t in sentence)
        _count_sentence(sentence, is_title, mentions)
    for label in labels:
        for sentence in _sentences(label):
            _count_sentence(sentence, True, mentions)
    return mentions


def _sentences(block: str) -> Iterator[list[_Token]]:
    sentence: list[_Token] = []
    is_apart, begins = True, True
    for written in block.split():
        found = None if _is_no_word(written) else _WORD.search(written)
        word = found[0].strip(".'’-") if found is not None else ""
        if found is None or not word or _WORD.search(written, found.end()):  # Unusual marks join two words.
            is_apart, begins = True, begins or written == "-"
            if sentence and written[-_LONGEST_WORD:].rstrip(_CLOSING).endswith(_ENDS):
                yield sentence
                sentence, begins = [], True
            continue
        end = found.end()
        rest = found[0][len(found[0].rstrip(".'’-")) :] + written[end:]
        if sentence and is_apart is False and found.start():
            is_apart = True
        ends_name = bool(_POSSESSIVE.search(found[0])) or bool(rest)
        word = _POSSESSIVE.sub("", word)
        is_initial = len(word) == 1 and word.isupper() and rest == "."
        begins = begins or not _QUOTES.isdisjoint(written[: found.start()])
        sentence.append(_Token(f"{word}." if is_initial else word, begins, is_apart))
        is_apart, begins = ends_name and not is_initial, ":" in rest
        if _is_end(word, rest, is_initial):
            yield sentence
            sentence, is_apart, begins = [], True, True
    if sentence:
        yield sentence


def _is_no_word(written: str) -> bool:
    """Return whether the text is not a word, for example a web address, a mail address or code."""
    return (
        written == EDGE
        or "://" in written
        or "@" in written
        or written.startswith("www.")
        or len(written) > _LONGEST_WORD
        or any(mark in written for mark in _CODE_MARKS)
    )


def _is_end(word: str, rest: str, is_initial: bool) -> bool:
    if not rest or is_initial or not any(mark in rest for mark in _ENDS):
        return False
    return "!" in rest or "?" in rest or word.casefold() not in _ABBREVIATIONS


def _count_sentence(sentence: Sequence[_Token], is_title: bool, mentions: Mentions) -> None:
    for run in _runs(sentence):
        words = [token.text for token in run]
        for word in words:
            if _PRODUCT.fullmatch(word):
                mentions.products[word] += 1
        starts = run[0].starts
        if starts and len(words) > 1 and (is_opener(words[0]) or mentions.lower[words[0].casefold()]):
            # The first word of the sentence is capitalised only because of its position.
            words, starts = words[1:], False
        words = _trimmed(words)
        if not words or len(words) > _LONGEST_RUN:
            continue
        # If words were removed from the front, the rest no longer starts the sentence.
        starts = starts and words[0] == run[0].text
        name = " ".join(words)
        mentions.seen[name] += 1
        if not starts and not is_title:
            mentions.inside[name] += 1


def _runs(sentence: Sequence[_Token]) -> Iterator[list[_Token]]:
    """Yield the longest sequences of capitalised words.

    Small words between two capitalised words are included.
    """
    run: list[_Token] = []
    small: list[_Token] = []
    for token in sentence:
        if token.is_apart or (small and not _is_capitalised(token.text)):
            yield from filter(None, (run,))
            run, small = [], []
        if _is_capitalised(token.text):
            run += [*small, token]
            small = []
        elif run and token.text in _PARTICLES:
            small = [token]
        else:
            yield from filter(None, (run,))
            run, small = [], []
    yield from filter(None, (run,))


def _is_capitalised(word: str) -> bool:
    """Return whether a word is written like a name.

    `Raft`, `eBay`, `GPT-4.1` and `Wi-Fi` are names. `Peer-to-peer` and contractions are not.

    """
    if word == "&":
        return True
    if _CONTRACTION.search(word):
        return False
    if not word[0].isalpha() or word.islower():
        return False
    parts = word.split("-")
    if len(parts) > 1 and any(part.islower() for part in parts):
        return False
    return word[0].isupper() or any(character.isupper() for character in word[1:3])


def _trimmed(words: Sequence[str]) -> list[str]:
    """Return the words without stop words and dates at the start, and stop words and marks at the end."""
    begin, end = 0, len(words)
    while begin < end and (is_filler(words[begin]) or is_calendar(words[begin]) or words[begin] == "&"):
        begin += 1
    while end > begin and (is_filler(words[end - 1]) or words[end - 1] in ("&", *_PARTICLES)):
        end -= 1
    return list(words[begin:end])


#: Version of the extraction rules, stored with the entities of a note. It must be raised whenever the rules
#: change.
MARKER: Final = 11
_SEEN_AT_LEAST: Final = 2


@frozen
class ExtractedEntities:
    """The entities that extraction found in a note, stored outside the note's file.

    `extractor` is the version of the rules, and `source` is the hash of the file's bytes. If these entities
    replace machine-written entities in the file, `instead_of` is the digest of the replaced entities.
    Otherwise `instead_of` is an empty string.
    """

    entities: tuple[str, ...]
    extractor: int
    source: str
    instead_of: str = ""

    def counts_for(self, note: Note) -> bool:
        """Return whether these entities apply to the note.

        The result is False if a person chose the entities in the note's file.

        """
        return not note.entities or is_machine_made(note, self.instead_of)


def is_machine_made(note: Note, digest: str | None) -> bool:
    """Return whether Lithos wrote the entities in the file.

    Entities that Lithos wrote have a version marker and the given `digest`.
    """
    return note.entities_extractor is not None and digest == digest_entities(note.entities)


#: Maximum number of entities per note.
MOST_ENTITIES: Final = 50


def digest_entities(entities: Iterable[str]) -> str:
    """Return a short digest of a list of entities. The digest depends on the order of the entities."""
    return hashlib.blake2b(json.dumps(list(entities)).encode(), digest_size=16).hexdigest()


def is_stale(note: Note) -> bool:
    """Return whether older rules extracted the note's entities, even if these rules found none."""
    return note.entities_extractor is not None and note.entities_extractor < MARKER


def may_extract(note: Note, *, force: bool = False) -> bool:
    """Return whether the entities of a note may be extracted.

    `force` is required if a person chose the note's entities or if the current rules already found them.
    """
    return force or not note.entities or is_stale(note)


def decide_extraction(note: Note, content: str, *, force: bool = False) -> tuple[str, ...] | None:
    """Return the entities to store for a note with the current marker, or None if the note must not change.

    Entities without a marker were chosen by a person. With `force`, entities are extracted even if a person
    chose them or the note has the current marker. An empty result never replaces a person's choice.
    """
    if not may_extract(note, force=force):
        return None
    found, marker = extract_entities(content), note.entities_extractor
    if is_stale(note):
        return found
    if not found:
        return () if note.entities and marker is not None else None
    return None if found == note.entities and marker == MARKER else found


def extract_entities(body: str, limit: int = MOST_ENTITIES) -> tuple[str, ...]:
    """Return the names in a body, sorted and unique.

    If more than `limit` names are found, the most frequent are returned.

    The running time is linear in the length of the body.
    """
    text = read_body(body)
    mentions = count_mentions(text.prose, text.labels)
    links = Counter(target for target in map(_page, text.links) if is_link_name(target))
    found: Counter[str] = Counter({name: count + mentions.seen[name] for name, count in links.items()})
    found |= _one_spelling(_named(text.code, mentions), {name.casefold() for name in links})
    contained = _contained(found)
    kept = {name: count for name, count in found.items() if name in links or name.casefold() not in contained}
    if len(kept) > limit:  # Equally frequent names are sorted: link targets first, then by name.
        most_frequent = sorted(kept, key=lambda name: (-kept[name], name not in links, name))
        return tuple(sorted(most_frequent[:limit]))
    return tuple(sorted(kept))


def _page(target: str) -> str:
    """Return the note name in a link target, without the anchor."""
    page, anchor, _ = target.partition("#")
    return page.strip() if anchor and page.strip() and not target.endswith("#") else target


def _one_spelling(names: Mapping[str, int], taken: set[str]) -> Counter[str]:
    """Merge names that differ only in case. The most frequent spelling is used.

    Names that are already `taken`, in any case, are left out.
    """
    kept: dict[str, str] = {}
    total: Counter[str] = Counter()
    for name in sorted(names, key=lambda name: (-names[name], name)):
        folded = name.casefold()
        if folded not in taken:
            total[kept.setdefault(folded, name)] += names[name]
    return total


def _named(code: Iterable[str], mentions: Mentions) -> Mapping[str, int]:
    """Return the names that are not link targets, with their numbers of mentions.

    A name in a code span counts only if it also occurs in prose.
    """
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
    """Return whether the text mentions a name often enough.

    A phrase needs one mention inside a sentence, unless the text has all word pairs of the phrase in lower
    case. A single word needs two mentions, and it must occur more often inside sentences than in lower case.
    """
    if " " in name:
        pairs = set(map(" ".join, pairwise(name.casefold().split())))
        return not pairs <= mentions.lower_pairs
    return mentions.seen[name] >= _SEEN_AT_LEAST and mentions.lower[name.casefold()] < mentions.inside[name]


def _contained(names: Iterable[str]) -> set[str]:
    """Return all words and word sequences that are part of longer names, casefolded."""
    inner: set[str] = set()
    for name in names:
        words = name.casefold().split()[: 2 * MOST_WORDS]
        inner.update(
            " ".join(words[begin:end])
            for begin, end in combinations(range(len(words) + 1), 2)
            if end - begin < len(words)
        )
    return inner
