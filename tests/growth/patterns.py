"""Texts that may slow parsers down: single characters, character pairs, and known slow patterns.

A pattern is a function that returns a text of about the given number of characters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Final

Pattern = Callable[[int], str]

CHARACTERS: Final[Mapping[str, str]] = {
    "blank": " ", "tab": "\t", "newline": "\n", "return": "\r", "no-break space": "\u00a0",
    "line separator": "\u2028", "letter": "a", "capital": "A", "digit": "7", "mark": "\u0301",
    "mark below": "\u0323", "double quote": '"', "quote": "'", "open bracket": "[", "close bracket": "]",
    "open paren": "(", "brace": "{", "less": "<", "hash": "#", "dash": "-", "underscore": "_",
    "colon": ":", "star": "*", "tilde": "~", "backtick": "`", "pipe": "|", "ampersand": "&",
    "percent": "%", "slash": "/", "dot": ".", "comma": ",", "question": "?", "equals": "=",
    "exclamation": "!", "backslash": "\\", "CJK": "語", "Hangul letter": "\u1100", "Thai vowel": "\u0e31",
    "capital sharp": "ẞ", "ligature": "\ufdfa", "emoji": "\U0001f600", "joiner": "\u200d",
    "selector": "\ufe0f", "ideographic stop": "。", "edge": "\x1f",
}  # fmt: skip

#: Characters whose ordered pairs are also tried.
PAIRED: Final = (
    "blank", "newline", "letter", "mark", "quote", "open bracket", "close bracket", "hash", "dash", "colon",
    "star", "backtick", "pipe", "dot", "CJK", "double quote",
)  # fmt: skip

#: Texts that are repeated without changes.
_REPEATED: Final[Mapping[str, str]] = {
    "open links": "[[", "links without end": "[[a", "links with bars": "[[a|", "links": "[[a]] ",
    "embedded links": "![[a|b]] ", "nested links": "[[a[[b]]", "link labels": "[a](", "link ends": "](b)",
    "images": "![](a) ", "footnotes": "[^a", "definitions": "[a]: b\n", "rules": "---\n",
    "rules with blanks": "--- \n\n", "setext headings": "a\n---\n", "setext titles": "a\n===\n",
    "empty headings": "#\n", "headings": "# a\n", "deep headings": "###### a\n\n",
    "headings closed": "# a # # #\n", "spaced headings": "   # a    \n", "fences": "```\n",
    "fences with info": "``` a\n", "wavy fences": "~~~ `\n", "fences in lists": "- ```\n",
    "quoted lines": "> > > a\n", "lists": "- a\n", "markers": "- - - ", "numbers with dots": "1. 1. 1. ",
    "tasks": "- [ ] ", "tables": "| a | b |\n|---|---|\n", "delimiter rows": "|:-:",
    "comments without end": "<!-- ", "comment ends": "--> ", "tags without end": "<a ",
    "entities without end": "&#a", "entities": "&amp;", "labels without end": "**a: ",
    "labels": "**a**: b\n", "low labels": "__a", "emphasis": "*_*_a", "sentences": "a. ",
    "odd sentence ends": "a.\u00a0 ", "CJK sentences": "語。", "closed CJK sentences": "。」",
    "Thai clauses": "ก ", "Hindi sentences": "क्षि। ", "Greek questions": "α; ",
    "flags": "\U0001f1e9\U0001f1ea",
    "conjuncts": "\u0915\u094d", "blank lines": "\n \n",
    "trailing blanks": "a    \n", "long blank lines": "a" + " " * 60 + "\n", "Windows lines": "a\r\n",
    "keys": "a: b\n", "bare keys": "a:\n", "keys in keys": "a: {b: ", "open lists": "[a, ",
    "list items": "- a: b\n", "question keys": "? a\n", "anchors": "&a b ", "aliases": "*a ",
    "anchored keys": "a: &a b\n", "YAML tags": "!!str ", "YAML comments": "# a\n", "YAML quotes": "'a' ",
    "YAML escapes": "\\u0301", "block scalars": "a: |\n  b\n", "percent escapes": "%41",
    "broken percents": "%4", "query pairs": "a=b&", "blank queries": "&=", "path parts": "a/",
    "path parameters": "a;/", "dotted parts": "../", "hosts": "a.", "times": "2024-01-01T00:00:00",
    "fractions": "0.123456789", "clock": "1:", "capital words": "Aa ", "capital dashes": "Aa-",
    "names of code": "A1-", "versions": "v1.2-", "contractions": "a't ", "possessives": "A's ",
    "particles": "Aa of ", "abbreviations": "e.g. ", "words in code": "`a` ", "open parentheses": "(a ",
    "phrases": '"a" ', "signs": "+a -a ", "operators": "a AND ", "negations": "NOT ", "fields": "title:a ",
    "Latin with marks": "e\u0301", "marked lines": "\u0301\u0323\n",
    "Hangul letters": "\u1112\u1161\u11ab", "CJK and Latin": "語a",
    "families": "\U0001f468\u200d\U0001f469\u200d", "JSON lists": "[[],", "JSON objects": '{"a":',
    "JSON escapes": "\\u00", "bytes of URIs": "lithos://",
}  # fmt: skip


def _repeat(unit: str) -> Pattern:
    return lambda length: (unit * (length // len(unit) + 1))[:length]


def _marks_of_two_classes(length: int) -> str:
    """Return combining marks that normalisation must sort.

    Each mark in the second half moves before the first half.
    """
    half = length // 2
    return "a" + "\u0301" * half + "\u0323" * half


def _marks_after_hash(length: int) -> str:
    return "#" + "\u0301" * length


def _yaml_bomb(length: int) -> str:
    """Return YAML in which each level refers nine times to the level above."""
    lines = ["a0: &a0 [x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, length // 60 + 1)]
    return "\n".join(lines) + "\n"


def _merge_keys(length: int) -> str:
    lines = ["a0: &a0 {x: y}"]
    lines += [f"a{n}: &a{n} {{<<: *a{n - 1}, k{n}: v}}" for n in range(1, length // 32 + 1)]
    return "\n".join(lines) + "\n"


def _merge_list(length: int) -> str:
    return "a: &a {" + ", ".join(f"k{n}: v" for n in range(length // 12)) + "}\n" + "<<: *a\n" * 8


def _different_keys(length: int) -> str:
    return "".join(f"key{n}: value\n" for n in range(length // 16 + 1))


def _deep_block(length: int) -> str:
    """Return a nested block. Its levels are indented as deeply as the length allows."""
    depth = int((2 * length) ** 0.5)
    return "".join(f"{' ' * level}a:\n" for level in range(depth))


def _different_links(length: int) -> str:
    return " ".join(f"[[target {n}]]" for n in range(length // 15 + 1))


def _same_stem_links(length: int) -> str:
    return " ".join(f"[[folder{n}/note]]" for n in range(length // 20 + 1))


def _different_headings(length: int) -> str:
    return "".join(f"{'#' * (n % 6 + 1)} Heading {n}\n\ntext\n\n" for n in range(length // 24 + 1))


def _long_fences(length: int) -> str:
    """Return fences. Each fence is longer than the previous fence."""
    return "".join("`" * (3 + n) + "\n" for n in range(int((2 * length) ** 0.5)))


def _different_names(length: int) -> str:
    return " ".join(f"Project{n} Apollo{n} said." for n in range(length // 24 + 1))


def _one_name(length: int) -> str:
    return "x " + " ".join(f"Aa{n}" for n in range(length // 6 + 1))


def _before_the_end(unit: str, last: str) -> Pattern:
    """Return a pattern that matches up to its last character, which does not match."""
    return lambda length: _repeat(unit)(length) + last


def _between(first: str, unit: str, last: str) -> Pattern:
    return lambda length: first + _repeat(unit)(length) + last


_MADE: Final[Mapping[str, Pattern]] = {
    "marks of two classes": _marks_of_two_classes,
    "marks after a hash": _marks_after_hash,
    "YAML bomb": _yaml_bomb,
    "merge keys": _merge_keys,
    "merged list": _merge_list,
    "different keys": _different_keys,
    "deep block": _deep_block,
    "different links": _different_links,
    "links of one stem": _same_stem_links,
    "different headings": _different_headings,
    "growing fences": _long_fences,
    "different names": _different_names,
    "one long name": _one_name,
    "long first heading": _between("# ", "long title ", "\n\ntext"),
    "blanks before a letter": _before_the_end(" ", "a"),
    "line breaks before a letter": _before_the_end("\n", "a"),
    "line breaks and blanks before a letter": _before_the_end(" \n", "a"),
    "dashes before a letter": _before_the_end("-", "a"),
    "hashes before a letter": _before_the_end("#", "a"),
    "hashes after a letter": _between("# a", "#", ""),
    "spaced hashes after a letter": _between("# a", " #", "b"),
    "blanks in a heading": _between("# ", " ", "a"),
    "digits before a letter": _before_the_end("1", "x"),
    "dotted digits before a letter": _before_the_end("1.", "x"),
    "letters before a mark": _before_the_end("a", "\u0301"),
    "hyphens before a mark": _before_the_end("a-", "\u0301"),
    "blank key": _between("a", " ", ": b\n"),
    "quoted key": _between("'", "a", "': b\n"),
    "link of blanks": _between("[[", " ", "a]]"),
    "link of marks": _between("[[a", "\u0301\u0323", "]]"),
    "link of breaks": _between("[[a", "\n ", "]]"),
    "link of slashes": _between("[[", "a/", "]]"),
    "bars in a link": _between("[[a", "|", "]]"),
    "one comment": _between("<!--", "-", "->"),
    "frontmatter never closed": _between("---\n", "a: b\n", ""),
    "frontmatter of rules": _between("---\n", "--- a\n", ""),
    "frontmatter of a title": _between("---\ntitle: ", "a ", "\n---\n"),
    "frontmatter of blanks": _between("---\n", " ", "\n---\n"),
    "frontmatter of a quoted title": _between('---\ntitle: "', "\\u0301", '"\n---\n'),
    "bearer": _between("https://", "a@", "/"),
    "address": _between("https://example.org/?", "utm_source=a&", ""),
    "port": _between("https://example.org:", "1", "/"),
    "integer": _between("1", "0", ""),
    "exponent": _between("1e", "9", ""),
    "base 16": _between("0x", "f", ""),
    "clock number": _between("1", ":1", ""),
    "JSON text": _between('["', "a", '"]'),
}


def single_patterns() -> dict[str, Pattern]:
    """Return single characters and the known bad patterns, by name."""
    single = {name: _repeat(character) for name, character in CHARACTERS.items()}
    return {**single, **{name: _repeat(unit) for name, unit in _REPEATED.items()}, **_MADE}


def pair_patterns() -> dict[str, Pattern]:
    """Return all ordered pairs of the characters in `PAIRED`."""
    return {
        f"{first} and {second}": _repeat(CHARACTERS[first] + CHARACTERS[second])
        for first, second in permutations(PAIRED, 2)
    }
