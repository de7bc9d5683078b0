"""Files below the notes folder that are ignored, by configured globs and Obsidian filters.

A glob is a path relative to the notes folder. `*` and `?` match within one name and `**` spans folders. A
glob that names a folder covers everything below the folder. An Obsidian filter is the beginning of a path, or
a regular expression between slashes. Like Obsidian, Lithos ignores case in both kinds of filters.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from typing import Any, Final, Self

from attrs import frozen

from lithos.text.words.analysis import normalise

#: Limits of Obsidian filters: maximum number of filters in one vault, and maximum number of characters in one
#: filter.
MOST_FILTERS: Final = 1_000
LONGEST_FILTER: Final = 500
#: Maximum number of unbounded repetitions in an expression. Each repetition multiplies the matching time by
#: the length of the path.
_MOST_REPEATS: Final = 2
#: Matches a repeated group: a closing bracket directly before `*`, `+` or `{n,m}`.
_REPEATED_GROUP: Final = re.compile(r"\)[*+{]")
_GLOB_PARTS: Final = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")
_GLOBS: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@frozen
class Ignored:
    """Patterns for the paths of ignored files. Without patterns, no file is ignored."""

    _globs: re.Pattern[str] | None = None
    _prefixes: tuple[str, ...] = ()
    _expressions: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, globs: Iterable[str] = (), filters: Iterable[str] = (), prefixes: Iterable[str] = ()) -> Self:
        """Build the patterns from globs, filters accepted by `check_filter`, and path prefixes."""
        translated = [_translate(glob) for glob in globs if glob.strip("/ ")]
        plain = [_folded(each) for each in prefixes if each]
        expressions: list[re.Pattern[str]] = []
        for each in filters:
            if _is_expression(each):
                expressions.append(_compile(each[1:-1]))
            else:
                plain.append(_folded(each))
        return cls(
            re.compile("|".join(translated), re.DOTALL) if translated else None,
            tuple(plain),
            tuple(expressions),
        )

    def __bool__(self) -> bool:
        return self._globs is not None or bool(self._prefixes) or bool(self._expressions)

    def covers(self, path: str) -> bool:
        """Return whether the file at this path, relative to the notes folder, is ignored."""
        return self.covers_folder(path) or any(each.search(path) for each in self._expressions)

    def covers_folder(self, path: str) -> bool:
        """Return whether all files below a folder are ignored.

        `path` ends with `/`. The result is False if this is uncertain.
        """
        if self._globs is not None and self._globs.fullmatch(path) is not None:
            return True
        return bool(self._prefixes) and _folded(path).startswith(self._prefixes)


def _folded(path: str) -> str:
    """Return a form of the path for comparisons that ignore case and Unicode form."""
    return path.lower() if path.isascii() else normalise("NFC", normalise("NFC", path).casefold())


def check_filter(text: str) -> str | None:
    """Return why Lithos cannot use an Obsidian filter, or None if the filter is usable.

    Expressions come from the vault and are not trusted. An expression that may never finish is rejected.
    """
    if not text or len(text) > LONGEST_FILTER:
        return f"it is empty or longer than {LONGEST_FILTER} characters"
    if not _is_expression(text):
        return None
    expression = text[1:-1]
    try:
        _compile(expression)
    except (re.error, RecursionError, OverflowError) as failure:
        return f"it is not a regular expression: {failure}"
    repeats = len(re.findall(r"(?<!\\)[*+]|\{\d*,\d*\}", expression))
    if _REPEATED_GROUP.search(expression) or re.search(r"\\[1-9]|\(\?P=", expression):
        return "it repeats a group or has a back-reference, so it may never finish"
    if repeats > _MOST_REPEATS:
        return f"it has more than {_MOST_REPEATS} repetitions, so it may never finish"
    return None


def _is_expression(text: str) -> bool:
    return len(text) > 2 and text.startswith("/") and text.endswith("/")


def _compile(expression: str) -> re.Pattern[str]:
    """Compile an expression. Raises `re.error`, `RecursionError` and `OverflowError`."""
    with warnings.catch_warnings():
        # Python warns that the meaning of `[[` or `--` in a set may change. This warning is suppressed
        # because the vault's owner cannot act on it.
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(expression, re.IGNORECASE)


def _translate(glob: str) -> str:
    """Return a regular expression that matches the paths of a glob and everything below these paths."""
    parts = _GLOB_PARTS.findall(glob.strip().strip("/"))
    return f"(?:{''.join(_GLOBS.get(part) or re.escape(part) for part in parts)})(?:/.*)?"


def read_filters(document: Any) -> tuple[list[str], list[str]]:
    """Return the usable filters in Obsidian's parsed `app.json`, and messages about unusable filters."""
    given = document.get("userIgnoreFilters") if isinstance(document, dict) else None
    if given is None:
        return [], [] if isinstance(document, dict) else ["it does not contain an object"]
    if not isinstance(given, list):
        return [], ["userIgnoreFilters is not a list"]
    usable: list[str] = []
    complaints = [f"only the first {MOST_FILTERS} filters are used"] if len(given) > MOST_FILTERS else []
    for each in given[:MOST_FILTERS]:
        reason = check_filter(each) if isinstance(each, str) else "it is not text"
        if reason is None:
            usable.append(each)
        else:
            complaints.append(f"the filter {str(each)[:80]!r} is left out: {reason}")
    return usable, complaints
