"""The date that a note states for its content, which may differ from the dates of its file.

Searches (docs/spec/search.md §1) and briefings (docs/spec/context.md §1) compare this date with the time in a
question.

The date comes from the first source that has one: the frontmatter (`date`, then `created`), the title, the
file name, or a line like `Date: 3 May 2024` near the beginning. A date with slashes counts only if one number
is above 12 or both are equal. Otherwise it is unclear which number is the month.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, Final

from attrs import frozen

from lithos.text.chunk import MONTHS

#: Frontmatter keys that may contain the date. The first key with a date counts.
KEYS: Final = ("date", "created")
#: Maximum number of leading characters, and of leading non-blank lines, in which a line `Date: ...` is
#: searched for.
HEAD: Final = 600
HEAD_LINES: Final = 6
#: Maximum length in characters of a title or value that is searched for a date.
LONGEST: Final = 200

_MONTH: Final = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_YEAR: Final = r"(?P<year>(?:19|20)[0-9]{2})"
_ANY_YEAR: Final = re.compile(r"(?:19|20)[0-9]{2}")
_DAY: Final = r"(?P<day>[0-3]?[0-9])"
#: Pattern that must match before a date. It allows `-` and `_`, because file names join dates to other text:
#: `2024-05-03-standup`, `standup_2024-05`.
_BEFORE: Final = r"(?<![^\W_])(?<!\.)(?<![0-9][-_])"
_BEHIND: Final = r"(?![^\W_]|\.[0-9])"
_NOT_A_DAY: Final = r"(?![-_][0-9])"
_FORMS: Final = tuple(
    re.compile(f"{_BEFORE}{form}{_BEHIND}", re.IGNORECASE)
    for form in (
        rf"{_YEAR}(?P<mark>[-_./])(?P<month>[01]?[0-9])(?P=mark){_DAY}(?:T[0-9:.+Z-]*)?",
        rf"{_YEAR}(?P<month>[01][0-9])(?P<day>[0-3][0-9])(?:[0-9]{{4}}(?:[0-9]{{2}})?)?",
        rf"{_DAY}(?P<between>[-_./])(?P<month>[0-3]?[0-9])(?P=between){_YEAR}",
        rf"{_DAY}(?:st|nd|rd|th|\.)? +(?:of +)?{_MONTH},? +{_YEAR}",
        rf"{_MONTH} +{_DAY}(?:st|nd|rd|th)?,? +{_YEAR}",
        rf"{_YEAR}[-_.](?P<month>[01][0-9]){_NOT_A_DAY}",
        rf"{_MONTH},? +{_YEAR}{_NOT_A_DAY}",
    )
)
_LINE: Final = re.compile(
    r"^[ \t]*(?:[-*>#]+ +)?[*_]{0,2}(?:date|datum|created|when)[*_]{0,2} ?:[*_]{0,2} *([^\n]+)",
    re.IGNORECASE | re.MULTILINE,
)


@frozen
class OwnDate:
    """A year and a month, and the day if it is known."""

    year: int
    month: int
    day: int | None = None

    def __str__(self) -> str:
        """Return the date in ISO 8601 format: `2024-05-03`, or `2024-05` if the day is unknown."""
        return f"{self.year:04}-{self.month:02}" + ("" if self.day is None else f"-{self.day:02}")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the full-text index terms of this date.

        The terms are the year, the month without its year, the month with its year, and the day.
        """
        month = f"-{self.month:02}"
        whole = (f"{self.year}", month, f"{self.year}{month}")
        return whole if self.day is None else (*whole, f"{month}-{self.day:02}", str(self))

    @property
    def words(self) -> str:
        """Return the words by which a question may name this date: its ISO form, day, month and year."""
        named = f"{MONTHS[self.month - 1]} {self.year}"
        return f"{self} {named}" if self.day is None else f"{self} {self.day} {named}"


def own_date(extra: Mapping[str, Any], title: str, path: str, content: str) -> OwnDate | None:
    """Return the date that a note states for its content, or None.

    `extra` contains the frontmatter keys that Lithos does not own.
    """
    return next(_dates(extra, title, path, content), None)


def _dates(extra: Mapping[str, Any], title: str, path: str, content: str) -> Iterator[OwnDate]:
    values = [extra.get(key) for key in KEYS]
    name = path.rpartition("/")[2].removesuffix(".md")
    for text in (*values, title, name, *_dated_lines(content)):
        found = read_date(text[:LONGEST]) if isinstance(text, str) else None
        if found is not None:
            yield found


def _dated_lines(content: str) -> Iterator[str]:
    for found in _LINE.finditer(content, 0, HEAD):
        before = content[: found.start()].splitlines()
        if sum(not line.isspace() for line in before if line) < HEAD_LINES:
            yield found[1]


def read_date(text: str) -> OwnDate | None:
    """Return the first date in a short text, or None. A date with a day is preferred to a month alone."""
    if _ANY_YEAR.search(text) is None:  # Most texts contain no year, so the slower search is skipped.
        return None
    for form in _FORMS:
        for found in form.finditer(text):
            read = _read(found.groupdict())
            if read is not None:
                return read
    return None


def _read(parts: Mapping[str, str | None]) -> OwnDate | None:
    name, written = parts.get("name"), parts.get("day")
    month = _month_of(name) if name else int(parts["month"] or 0)
    day = None if written is None else int(written)
    if parts.get("between") == "/" and day is not None:
        if max(day, month) <= 12 and day != month:
            return None
        day, month = max(day, month), min(day, month)
    try:
        date(int(parts["year"] or 0), month, day or 1)
    except ValueError:
        return None
    return None if day == 0 else OwnDate(int(parts["year"] or 0), month, day)


#: Maximum number of keys per date (`OwnDate.keys`). A date with a day has this number of keys.
MOST_KEYS: Final = 5


def _month_of(name: str) -> int:
    return next(n for n, month in enumerate(MONTHS, 1) if month[:3].lower() == name[:3].lower())


_ASKED_MONTH: Final = re.compile(
    rf"(?:(?<![\w.:/-])(?P<before>[0-3]?[0-9])(?:st|nd|rd|th|\.)? +(?:of +)?)?\b{_MONTH}(?=\W|\Z)"
    rf"(?:,? +{_YEAR}|(?: +(?P<behind>[0-3]?[0-9])(?:st|nd|rd|th)?(?![\w:%]|[.,/-][0-9])))?",
    re.IGNORECASE,
)
_ASKED_YEAR: Final = re.compile(rf"(?<![\w-]){_YEAR}(?![\w-])")
_MONTH_BEGINS: Final = re.compile("|".join(month[:3] for month in MONTHS), re.IGNORECASE)
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
#: Maximum number of characters of a question that are searched for a date.
_QUESTION: Final = 2_000


@frozen
class AskedTime:
    """The time named in a question: a year, a month with or without a year, or a day of a month."""

    year: int | None
    month: int | None = None
    day: int | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the key that all dates within this time share.

        If the time is a day, the key of the month is returned too.
        """
        year = "" if self.year is None else f"{self.year}"
        month = year if self.month is None else f"{year}-{self.month:02}"
        return (month,) if self.day is None else (f"{month}-{self.day:02}", month)

    def covers(self, own: OwnDate) -> bool:
        """Return whether a note's own date is within this time."""
        return (
            self.year in (None, own.year) and self.month in (None, own.month) and self.day in (None, own.day)
        )


def asked_time(question: str) -> AskedTime | None:
    """Return the most exact time that a question names, or None.

    `may` alone is a verb, not a month.
    """
    question = question[:_QUESTION]
    whole = read_date(question)
    if whole is not None:
        return AskedTime(whole.year, whole.month, whole.day)
    # Most questions contain no month name, so the slower search is skipped.
    for found in _ASKED_MONTH.finditer(question) if _MONTH_BEGINS.search(question) else ():
        if found["name"].lower() not in ("may", "mar", "march") or found["name"][0].isupper():
            return _asked(found)
    years = _ASKED_YEAR.search(question)
    return None if years is None else AskedTime(int(years["year"]))


def _asked(found: re.Match[str]) -> AskedTime:
    """Return the month named in a question, with its day or year if the question names them."""
    year, month, day = found["year"], _month_of(found["name"]), found["before"] or found["behind"]
    if day is not None and not 1 <= int(day) <= _DAYS[month - 1]:
        day = None
    return AskedTime(None if year is None else int(year), month, None if day is None else int(day))


def time_alone(text: str) -> AskedTime | None:
    """Return the time if a short text consists only of a time, such as `8 May 2023`, `May` or `2023`.

    For any other text, return None.
    """
    text = text.strip()
    if len(text) > LONGEST:
        return None
    is_alone = any(form.fullmatch(text) for form in (*_FORMS, _ASKED_MONTH, _ASKED_YEAR))
    return asked_time(text) if is_alone else None
