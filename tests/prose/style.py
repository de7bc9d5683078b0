"""What `docs/style.md` bans, as patterns, each with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

from tests.prose.texts import Text

#: One exception a line: kind, path, the words, the reason; separated by tabs.
EXCEPTIONS: Final = Path(__file__).parent / "exceptions.tsv"
#: Words of a test's name.
LONGEST_NAME: Final = 12


@frozen
class Ban:
    """A pattern, and what to write instead."""

    pattern: re.Pattern[str]
    instead: str


def _ban(pattern: str, instead: str, *, is_exact: bool = False) -> Ban:
    return Ban(re.compile(pattern, 0 if is_exact else re.IGNORECASE), instead)


BANS: Final = (
    _ban(r"\banew\b", "again, from scratch"),
    _ban(r"\bbeside\b", "next to, while … runs, in addition to"),
    _ban(r"\b(tell|tells|told|telling)\b", "report, show, return, say"),
    _ban(r"\blies?\b(?! (?:about|to)\b)", "is, is stored"),
    _ban(r"\bstands?\b(?!-| for\b| still\b| alone\b)", "is, is stored"),
    _ban(r"\bgoes\b", "is sent, is deleted, is moved, continues"),
    _ban(r"\b(mend|mends|mended|mending)\b", "fix, repair"),
    _ban(r"\b(fault|faults|faulty)\b", "error, bug, failure"),
    _ban(r"\bby (it|them|him)sel(f|ves)\b", "automatically, on its own"),
    _ban(r"\b(so many|as such|as of)\b", "at most N, from, or nothing"),
    _ban(r"\b(somebody|nobody|everybody|anybody)\b", "the agent, no caller, all clients"),
    _ban(r"\bwhoever\b", "the noun that is meant: the caller, the operator"),
    _ban(r"\b(for|of|by|to|from|with|and|but|than) who\b", "a noun before who: clients that …"),
    _ban(r"(?:^|[.;:] )(?:who|what)\b(?![^.;:]*\?)[^.;:]*", "a noun as the subject: notes that …"),
    _ban(r"(?<!there )\b(is|are|was|were|be) no (?!longer|more|less|better|doubt|such\b)\w+", "is not a"),
    # Not Python's None.
    _ban(r"\b(is|are|was|were|has|have|had) none\b", "is not one, has no X", is_exact=True),
    _ban(r"\b(?<![-])signs?\b(?![- ](?:in|up|out)\b|ed|ing)", "character"),
    _ban(r"\b(rooms?|floors?|doors?)\b", "space, package, layer, endpoint"),
    _ban(r"\bclients? elsewhere\b", "remote clients"),
    _ban(r"\bwho runs (this|the|it)\b", "the operator"),
    _ban(r"\b(outside|foreign) (edit|change|save)s?\b", "external edit"),
    _ban(r"\bby (words|meaning)\b", "full-text, semantic"),
    _ban(r"\b(thrice|for ever|twofold)\b", "three times, permanently"),
    _ban(r"\b(a|the|each|one|every|first|next|last) looks?\b(?! like)|\blooks for\b", "a check, searches"),
    _ban(r"^(Most|Least) [a-z ]+\.$", "Maximum …, Minimum …", is_exact=True),
)  # fmt: skip
#: How a test's name may not begin.
OPENINGS: Final = _ban(
    r"^(what|who|whoever|of|it|they|its|that|those|he|she|we|nor|so)\b", "the subject first"
)


@frozen
class Foul:
    """A banned pattern in a text."""

    text: Text
    found: str
    instead: str

    def __str__(self) -> str:
        where = f"{self.text.path}:{self.text.line}"
        return f"{where}: {self.text.kind}: {self.found!r}: write {self.instead}"


def fouls_in(text: Text) -> Iterator[Foul]:
    """What is banned in one text."""
    plain = text.plain
    for ban in BANS if text.kind != "test name" else (*BANS, OPENINGS):
        for match in ban.pattern.finditer(plain):
            yield Foul(text, match[0].strip(" .;:")[:60], ban.instead)
    if text.kind == "test name" and len(plain.split()) > LONGEST_NAME:
        yield Foul(text, plain, f"at most {LONGEST_NAME} words")


def find_fouls(texts: Iterable[Text]) -> list[Foul]:
    """Everything that is banned, without what is listed as an exception."""
    allowed = read_exceptions()
    found = (foul for text in texts for foul in fouls_in(text))
    return [foul for foul in found if (foul.text.path, foul.found) not in allowed]


def read_exceptions() -> dict[tuple[str, str], str]:
    """The reason of each exception by its file and words."""
    rows = [line.split("\t") for line in EXCEPTIONS.read_text(encoding="utf-8").splitlines() if line]
    return {(path, found): reason for path, found, reason in rows}
