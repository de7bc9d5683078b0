"""Keys of known providers. A key begins with fixed text, such as `ghp_`, and is random after it.

The rules are those of Betterleaks (`rules.json`, MIT licence) and of `own_shapes.py`. Words shorter than any
key are skipped before a rule is tried, and every pattern is bounded, so a scan takes linear time.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from attrs import frozen

from lithos.text.secrets.own_shapes import OWN_SHAPES
from lithos.text.secrets.placeholders import entropy, is_random

#: Fewest characters of a word that may contain a key.
SHORTEST: Final = 16
#: Characters that are split into words at once, so that a long text needs little memory.
_PIECE: Final = 64 * 1024
#: Characters around a rule's key. A key follows a letter only after an escaped character (`\n`, `%3D`) or a
#: colour of a terminal.
_BEFORE: Final = re.compile(r"(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\[\dm)|(?<=\[\d\dm)")
_AFTER: Final = r"(?![A-Za-z0-9])"
#: Rest of a key that is longer than its rule says. It must not stay visible.
_REST: Final = re.compile(r"[A-Za-z0-9_-]{0,1000}")
#: Keys whose fixed text is not at their beginning: the text, the characters in front of it, kind and pattern.
_INNER: Final = (
    # Telegram: id of the bot, and 35 characters that begin with AA (core.telegram.org/bots/api).
    (":AA", (10, 9, 8), "telegram bot token", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,36}"),
    # Entra ID (Azure AD): three characters, a digit and `Q~` (learn.microsoft.com/entra).
    ("Q~", (4,), "azure client secret", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    # Mailchimp: a hash and the data centre (mailchimp.com/developer).
    ("-us", (32,), "mailchimp api key", r"[0-9a-f]{32}-us\d{1,2}"),
)


@frozen
class Rule:
    """A rule: the kind of key, the pattern of a whole key, and its minimum entropy."""

    kind: str
    pattern: str
    least: float
    start: str

    def end_of(self, text: str, begin: int) -> int:
        """Return the end of the key that begins at `begin`, or -1."""
        found = _compiled(self.pattern).match(text, begin)
        if found is None:
            return -1
        value = found[0]
        if entropy(value) < self.least or not is_random(value[len(self.start) :]):
            return -1
        rest = _REST.match(text, found.end())
        return found.end() if rest is None else rest.end()


def provider_keys(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield begin, end and kind of each key of a known provider."""
    starts, rules = _rules()
    for word, at in _long_words(text):
        found = starts.search(word)
        while found is not None:
            if _BEFORE.match(word, found.start()):
                yield from _key_at(text, at + found.start(), rules[found[0]])
            found = starts.search(word, found.start() + 1)
    yield from _inner_keys(text)


def are_rules_read() -> bool:
    """Return whether the rules are in memory. Reading them takes about 30 ms, at the first search."""
    return _rules.cache_info().currsize > 0


def _key_at(text: str, begin: int, rules: Sequence[Rule]) -> Iterator[tuple[int, int, str]]:
    """Yield the key that begins at a position according to one of these rules, if there is one."""
    for rule in rules:
        end = rule.end_of(text, begin)
        if end > 0:
            yield begin, end, rule.kind
            return


def _inner_keys(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the keys whose fixed text is not at their beginning."""
    for needle, distances, kind, pattern in _INNER:
        at = text.find(needle)
        while at >= 0:
            for begin in (at - distance for distance in distances if distance <= at):
                found = _compiled(pattern).match(text, begin) if _BEFORE.match(text, begin) else None
                if found is not None and is_random(found[0]):
                    yield begin, found.end(), kind
                    break
            at = text.find(needle, at + len(needle))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return the compiled pattern of a key. Patterns are compiled when their fixed text is met first."""
    return re.compile(f"(?:{pattern}){_AFTER}")


def _long_words(text: str) -> Iterator[tuple[str, int]]:
    """Yield the words that are long enough for a key, with their positions."""
    begin = 0
    while begin < len(text):
        end = _blank_after(text, begin + _PIECE)
        at = begin
        for word in text[begin:end].split():
            if len(word) >= SHORTEST:
                at = text.index(word, at)
                yield word, at
                at += len(word)
        begin = end


def _blank_after(text: str, at: int) -> int:
    """Return the position of the first blank from `at` on. A word is never cut."""
    found = _BLANK.search(text, at) if at < len(text) else None
    return found.start() if found is not None else len(text)


_BLANK: Final = re.compile(r"\s")


@cache
def _rules() -> tuple[re.Pattern[str], Mapping[str, Sequence[Rule]]]:
    """Return the pattern of all beginnings, and the rules by beginning. Longer beginnings come first."""
    told = json.loads(files(__package__).joinpath("rules.json").read_text(encoding="utf-8"))
    shapes = [
        (rule["kind"], rule["starts"], rule["pattern"], rule["entropy"] or 3.0) for rule in told["rules"]
    ]
    rules: defaultdict[str, list[Rule]] = defaultdict(list)
    for kind, starts, pattern, least in (*shapes, *OWN_SHAPES):
        for start in starts:
            rules[start].append(Rule(kind, pattern, least, start))
    ordered = sorted(rules, key=len, reverse=True)
    for start in ordered:  # `sk-proj-` is also a beginning of the rules of `sk-`.
        rules[start] += [
            each for other in ordered if other != start and start.startswith(other) for each in rules[other]
        ]
    return re.compile(_any_of(ordered)), rules


def _any_of(texts: Sequence[str]) -> str:
    """Return a pattern of any of these texts, longest first. Each branch begins with another character.

    `re` then skips the other characters fast. Nothing may stand in front of the branches.
    """
    grouped: defaultdict[str, list[str]] = defaultdict(list)
    for text in texts:
        grouped[text[0]].append(text[1:])
    parts = (f"{re.escape(first)}(?:{'|'.join(map(re.escape, rest))})" for first, rest in grouped.items())
    return "|".join(parts)
